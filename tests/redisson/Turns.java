// SPDX-License-Identifier: Apache-2.0
//
// java Turns PORT: Redisson's side of scripts/redisson where many want one lock; see turns.c, which
// writes a command a line:
//   share NAME THREADS MS   so many threads lock and unlock for so long; answers "shared", the
//                           sections of all, and the longest wait in us
//   try NAME TIMES MS       tries one after the other, each for so long at most; answers "tried" and
//                           how many succeeded

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Turns {
    private static RedissonClient redisson;

    private Turns() { }

    private static void work(RLock lock, long until, AtomicLong count, AtomicLong worst) {
        for (long now = System.nanoTime(); now < until;) {
            lock.lock();
            long got = System.nanoTime();
            long wait = got - now;
            worst.accumulateAndGet(wait, Math::max);
            lock.unlock();
            now = System.nanoTime();
            if (got < until) {
                count.incrementAndGet();
            }
        }
    }

    private static String share(RLock lock, int threads, long ms) throws InterruptedException {
        AtomicLong count = new AtomicLong();
        AtomicLong worst = new AtomicLong();
        List<Thread> all = new ArrayList<>();
        long until = System.nanoTime() + ms * 1_000_000;
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> work(lock, until, count, worst));
            thread.setUncaughtExceptionHandler((t, e) -> {
                e.printStackTrace();
                System.exit(1);
            });
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        return "shared " + count + " " + worst.get() / 1000;
    }

    private static String tryTimes(RLock lock, int times, long ms) throws InterruptedException {
        int got = 0;
        for (int i = 0; i < times; i++) {
            if (lock.tryLock(ms, TimeUnit.MILLISECONDS)) {
                got++;
                lock.unlock();
            }
        }
        return "tried " + got;
    }

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + args[0]).setTimeout(60_000);
        redisson = Redisson.create(config);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            RLock lock = redisson.getLock(words[1]);
            int count = Integer.parseInt(words[2]);
            long ms = Long.parseLong(words[3]);
            System.out.println(words[0].equals("share") ? share(lock, count, ms)
                : tryTimes(lock, count, ms));
        }
        System.exit(0);
    }
}
