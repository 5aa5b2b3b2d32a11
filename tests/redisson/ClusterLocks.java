// SPDX-License-Identifier: Apache-2.0
//
// java ClusterLocks MASTER|SLAVE|OFF PORT...: Redisson's side of scripts/redisson in a cluster, with
// the ports of its nodes: with this subscriptionMode, or with shardedSubscriptionMode OFF. Locks at the word of cluster_locks.c, which writes a command a line:
//   hold NAME            locks; answers "held"
//   release NAME         unlocks; answers "released" and System.nanoTime() before that
//   wait NAME            locks in a new thread, says "got" and the time, and unlocks
//   count NAME KEY N T   T threads, each of which N times adds 1 to KEY under the lock; "counted"

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.ShardedSubscriptionMode;
import org.redisson.config.SubscriptionMode;

public final class ClusterLocks {
    private static RedissonClient redisson;

    private ClusterLocks() { }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static Thread start(Runnable work) {
        Thread thread = new Thread(work);
        thread.setUncaughtExceptionHandler((t, e) -> {
            e.printStackTrace();
            System.exit(1);
        });
        thread.start();
        return thread;
    }

    private static void waitFor(RLock lock) {
        lock.lock();
        long at = System.nanoTime();
        lock.unlock();
        say("got " + at);
    }

    private static void count(RLock lock, RBucket<String> counter, int times) {
        for (int i = 0; i < times; i++) {
            lock.lock();
            String value = counter.get();
            counter.set(String.valueOf(value == null ? 1 : Integer.parseInt(value) + 1));
            lock.unlock();
        }
    }

    private static void countByAll(String[] words) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(words[4]); i++) {
            threads.add(start(() -> count(redisson.getLock(words[1]),
                redisson.getBucket(words[2], StringCodec.INSTANCE), Integer.parseInt(words[3]))));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        say("counted");
    }

    // Only what the counter needs is set, which has to be read where it was written, and times that
    // are long enough for a busy machine.
    private static Config configure(String[] args) {
        Config config = new Config();
        ClusterServersConfig servers = config.useClusterServers();
        servers.setReadMode(ReadMode.MASTER).setTimeout(60_000).setSubscriptionTimeout(60_000);
        if (args[0].equals("SLAVE")) {
            servers.setSubscriptionMode(SubscriptionMode.SLAVE);
        } else if (args[0].equals("OFF")) {
            servers.setShardedSubscriptionMode(ShardedSubscriptionMode.OFF);
        }
        for (int i = 1; i < args.length; i++) {
            servers.addNodeAddress("redis://127.0.0.1:" + args[i]);
        }
        return config;
    }

    public static void main(String[] args) throws Exception {
        redisson = Redisson.create(configure(args));
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            RLock lock = redisson.getLock(words[1]);
            if (words[0].equals("hold")) {
                lock.lock();
                say("held");
            } else if (words[0].equals("release")) {
                long at = System.nanoTime();
                lock.unlock();
                say("released " + at);
            } else if (words[0].equals("wait")) {
                start(() -> waitFor(lock));
            } else {
                countByAll(words);
            }
        }
        System.exit(0);
    }
}
