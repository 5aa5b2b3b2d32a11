// SPDX-License-Identifier: Apache-2.0
//
// Redisson's locks, for bench/peer.c: java Peer kind name clients. Each client is a
// RedissonClient of its own, with one thread that locks and unlocks. The clients share what they
// can (Netty's threads, the executor).

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.Lock;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import org.redisson.Redisson;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Peer {
    /** A time of pairs on a lock of its own, until the compiler has seen them often enough. */
    private static final long WARM_UP_NS = 4_000_000_000L;

    private static final String URL = System.getenv("RLOCK_URL");
    private static volatile long start;
    private static volatile long stop;

    /** One thread with a client. */
    private static final class Client extends Thread {
        private final String kind;
        private final RedissonClient redisson;
        private final String name;
        private final CyclicBarrier begin;
        private final CyclicBarrier end;
        private final CountDownLatch warm;
        private long pairs;
        private int turn;

        Client(String kind, String name, RedissonClient redisson, CyclicBarrier begin,
                CyclicBarrier end, CountDownLatch warm) {
            this.kind = kind;
            this.name = name;
            this.redisson = redisson;
            this.begin = begin;
            this.end = end;
            this.warm = warm;
            setDaemon(true);
        }

        /** Locks and unlocks until the end of the round. */
        private void work(String lockName, long until) {
            Lock plain = null;
            RReadWriteLock both = null;
            if (kind.equals("mutex")) {
                plain = redisson.getLock(lockName);
            } else if (kind.equals("fair")) {
                plain = redisson.getFairLock(lockName);
            } else {
                both = redisson.getReadWriteLock(lockName);
            }
            if (kind.equals("read")) {
                plain = both.readLock();
            } else if (kind.equals("write")) {
                plain = both.writeLock();
            }
            while (System.nanoTime() < until) {
                Lock lock = plain != null ? plain
                        : turn++ % 10 == 0 ? both.writeLock() : both.readLock();
                lock.lock();
                lock.unlock();
                if (System.nanoTime() < until) {
                    pairs++;
                }
            }
        }

        @Override
        public void run() {
            try {
                work(name + "-warm-" + getId(), System.nanoTime() + WARM_UP_NS);
                warm.countDown();
                while (true) {
                    begin.await();
                    pairs = 0;
                    long wait = start - System.nanoTime();
                    if (wait > 0) {
                        Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
                    }
                    work(name, stop);
                    end.await();
                }
            } catch (Throwable t) {
                t.printStackTrace();
                System.exit(1);
            }
        }
    }

    private static RedissonClient connect(EventLoopGroup group, ExecutorService executor) {
        Config config = new Config();
        config.setEventLoopGroup(group);
        config.setExecutor(executor);
        config.useSingleServer()
                .setAddress(URL)
                .setConnectionMinimumIdleSize(1)
                .setConnectionPoolSize(4)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(4);
        return Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0];
        String name = args[1];
        int count = Integer.parseInt(args[2]);
        int processors = Runtime.getRuntime().availableProcessors();
        EventLoopGroup group =
                new MultiThreadIoEventLoopGroup(2 * processors, NioIoHandler.newFactory());
        ExecutorService executor = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        CyclicBarrier begin = new CyclicBarrier(count + 1);
        CyclicBarrier end = new CyclicBarrier(count + 1);
        CountDownLatch warm = new CountDownLatch(count);
        Client[] clients = new Client[count];
        for (int i = 0; i < count; i++) {
            clients[i] = new Client(kind, name, connect(group, executor), begin, end, warm);
        }
        for (Client client : clients) {
            client.start();
        }
        warm.await();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            start = System.nanoTime() + Long.parseLong(words[1]) * 1000;
            stop = start + Long.parseLong(words[2]) * 1000;
            begin.await();
            end.await();
            StringBuilder did = new StringBuilder("did");
            for (Client client : clients) {
                did.append(' ').append(client.pairs);
            }
            System.out.println(did);
        }
        System.exit(0);
    }
}
