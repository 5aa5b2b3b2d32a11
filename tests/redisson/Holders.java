// SPDX-License-Identifier: Apache-2.0
//
// java Holders PORT turns N | race N: Redisson's side of scripts/redisson; see holders.c. Its tokens
// are those that lockAndGetToken() returns.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RFencedLock;
import org.redisson.api.RList;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public final class Holders {
    private static final int THREADS = 2;
    private static final long TURN_MAX_S = 60;

    private static RFencedLock fenced;
    private static RList<String> tokens;

    private Holders() { }

    private static void holdOnce() {
        Long token = fenced.lockAndGetToken();
        tokens.add("java:" + token);
        fenced.unlock();
    }

    private static void takeTurns(RedissonClient redisson, long count) throws InterruptedException {
        RBlockingQueue<String> ours = redisson.getBlockingQueue("turn:java", StringCodec.INSTANCE);
        RBlockingQueue<String> theirs = redisson.getBlockingQueue("turn:c", StringCodec.INSTANCE);
        for (long i = 0; i < count; i++) {
            if (ours.poll(TURN_MAX_S, TimeUnit.SECONDS) == null) {
                throw new IllegalStateException("no turn");
            }
            for (long k = 0; k < 1 + i / 2 % 2; k++) {
                holdOnce();
            }
            theirs.add("go");
        }
    }

    private static void race(long count) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(() -> {
                for (long k = 0; k < count; k++) {
                    holdOnce();
                }
            });
            thread.setUncaughtExceptionHandler((t, e) -> {
                e.printStackTrace();
                System.exit(1);
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Config config = new Config();
        config.setThreads(2).setNettyThreads(2);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + args[0])
            .setConnectionMinimumIdleSize(1).setConnectionPoolSize(6)
            .setTimeout(60_000); // long enough for a busy machine
        RedissonClient redisson = Redisson.create(config);
        fenced = redisson.getFencedLock("fenced");
        tokens = redisson.getList("tokens", StringCodec.INSTANCE);
        long count = Long.parseLong(args[2]);
        if (args[1].equals("turns")) {
            takeTurns(redisson, count);
        } else {
            race(count);
        }
        redisson.shutdown();
    }
}
