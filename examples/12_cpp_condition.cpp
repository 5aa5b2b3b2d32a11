/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++: std::condition_variable_any takes any lock, so also an rlock mutex: then threads
 * of this process wait for each other, while the mutex is shared with other hosts. Its
 * signals stay in the process. A condition of rlock reaches other processes; the short
 * class Condition gives it the same interface.
 *
 *     12_cpp_condition
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when a number is missing.
 */
#include <rlock.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <queue>
#include <system_error>
#include <thread>

enum { NUMBERS = 100 };

static void check(int rc)
{
    if (rc != 0)
        throw std::system_error(rc, std::generic_category(), rlock_errmsg());
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
    void unlock() { check(rlock_mutex_unlock(&m)); }
    rlock_mutex_t *native_handle() { return &m; }
};

class Condition
{
    rlock_cond_t c;

  public:
    explicit Condition(const char *name) { check(rlock_cond_init(&c, nullptr, name)); }
    ~Condition() { rlock_cond_destroy(&c); }
    Condition(const Condition &) = delete;
    Condition &operator=(const Condition &) = delete;
    void notify_one() { check(rlock_cond_signal(&c)); }
    void notify_all() { check(rlock_cond_broadcast(&c)); }
    void wait(std::unique_lock<Mutex> &held)
    {
        check(rlock_cond_wait(&c, held.mutex()->native_handle()));
    }
    template <class P> void wait(std::unique_lock<Mutex> &held, P stop)
    {
        while (!stop())
            wait(held);
    }
};
/* clang-format on */

/* Sends numbers from a thread to this one; returns their sum. */
template <class Any> static long send(Mutex &mutex, Any &changed)
{
    std::queue<int> queue;
    long total = 0;

    std::thread sender([&] {
        for (int i = 1; i <= NUMBERS; i++) {
            std::lock_guard<Mutex> held(mutex);
            queue.push(i);
            changed.notify_one();
        }
    });
    for (int n = 0; n < NUMBERS; n++) {
        std::unique_lock<Mutex> held(mutex);
        changed.wait(held, [&] { return !queue.empty(); });
        total += queue.front();
        queue.pop();
    }
    sender.join();
    return total;
}

int main()
{
    try {
        Mutex mutex("cpp-condition");
        std::condition_variable_any local;
        Condition shared("cpp-condition");
        long in_process = send(mutex, local), anywhere = send(mutex, shared);
        std::printf("%ld by condition_variable_any, %ld by a condition of rlock\n",
                    in_process, anywhere);
        return in_process == anywhere && anywhere == NUMBERS * (NUMBERS + 1) / 2 ? 0 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "12_cpp_condition: %s\n", e.what());
        return 1;
    }
}
