/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++: with the two short classes below, the guards of the standard library take locks
 * that hosts share: std::lock_guard, std::unique_lock, std::scoped_lock,
 * std::shared_lock.
 *
 *     09_cpp
 *
 * Errors are thrown as std::system_error. A lost lease is ESTALE from unlock:
 * std::unique_lock::unlock() throws it. At the end of a guard it ends the program,
 * because destructors do not throw, and what was done under the guard cannot be undone.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when an update is lost or readers do not read side by side.
 */
#include <rlock.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

static void check(int rc)
{
    if (rc != 0)
        throw std::system_error(rc, std::generic_category(), rlock_errmsg());
}

static bool tried(int rc)
{
    if (rc != EBUSY)
        check(rc);
    return rc == 0;
}

/* a line each */
/* clang-format off */
class Mutex
{
    rlock_mutex_t m;

  public:
    explicit Mutex(const char *name) { check(rlock_mutex_init(&m, nullptr, name)); }
    ~Mutex() { rlock_mutex_destroy(&m); }
    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;
    void lock() { check(rlock_mutex_lock(&m)); }
    bool try_lock() { return tried(rlock_mutex_trylock(&m)); }
    void unlock() { check(rlock_mutex_unlock(&m)); }
};

class SharedMutex
{
    rlock_rwlock_t l;

  public:
    explicit SharedMutex(const char *name) { check(rlock_rwlock_init(&l, nullptr, name)); }
    ~SharedMutex() { rlock_rwlock_destroy(&l); }
    SharedMutex(const SharedMutex &) = delete;
    SharedMutex &operator=(const SharedMutex &) = delete;
    void lock() { check(rlock_rwlock_wrlock(&l)); }
    bool try_lock() { return tried(rlock_rwlock_trywrlock(&l)); }
    void unlock() { check(rlock_rwlock_unlock(&l)); }
    void lock_shared() { check(rlock_rwlock_rdlock(&l)); }
    bool try_lock_shared() { return tried(rlock_rwlock_tryrdlock(&l)); }
    void unlock_shared() { check(rlock_rwlock_unlock(&l)); }
};
/* clang-format on */

enum { THREADS = 4, TRANSFERS = 50, COINS = 1000, PATIENCE_S = 20 };

static void in_threads(void (*work)())
{
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work);
    for (auto &thread : threads)
        thread.join();
}

/* ---- two accounts, each with a lock of its own */

static Mutex *lock_a, *lock_b;
static long a = COINS, b;

static void transfer()
{
    for (int i = 0; i < TRANSFERS; i++) {
        std::scoped_lock both(*lock_a, *lock_b); /* in any order, without a deadlock */
        long before = a;
        std::this_thread::yield();
        a = before - 1;
        b++;
    }
}

/* ---- settings that many read */

static SharedMutex *settings;
static std::mutex mu;
static std::condition_variable all_inside;
static int inside;

static void look_up()
{
    std::shared_lock<SharedMutex> reading(*settings);
    std::unique_lock<std::mutex> lock(mu);
    inside++;
    all_inside.notify_all();
    all_inside.wait_for(lock, std::chrono::seconds(PATIENCE_S),
                        [] { return inside == THREADS; });
}

static bool writer_keeps_out_a_reader()
{
    std::unique_lock<SharedMutex> writing(*settings);
    bool got_in = false;
    std::thread([&] {
        std::shared_lock<SharedMutex> reading(*settings, std::try_to_lock);
        got_in = reading.owns_lock();
    }).join();
    writing.unlock(); /* called here, so that a lost lease throws */
    return !got_in;
}

int main()
try {
    std::string name = "cpp/" + std::to_string(getpid());
    Mutex first((name + "/a").c_str()), second((name + "/b").c_str());
    SharedMutex shared((name + "/settings").c_str());

    lock_a = &first, lock_b = &second, settings = &shared;
    in_threads(transfer);
    auto begin = std::chrono::steady_clock::now();
    in_threads(look_up);
    bool together =
        std::chrono::steady_clock::now() - begin < std::chrono::seconds(PATIENCE_S);
    bool kept_out = writer_keeps_out_a_reader();
    std::lock_guard<Mutex> guard(first);
    std::printf("%ld + %ld coins, readers %s, a writer keeps readers %s\n", a, b,
                together ? "side by side" : "one by one", kept_out ? "out" : "in");
    return a == COINS - THREADS * TRANSFERS && a + b == COINS && together && kept_out ? 0
                                                                                      : 1;
} catch (const std::system_error &error) {
    std::fprintf(stderr, "%s (%d)\n", error.what(), error.code().value());
    return 2;
}
