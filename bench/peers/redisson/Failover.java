// SPDX-License-Identifier: Apache-2.0
//
// java Failover default|careful TAG PORT...: Redisson as a contender of bench/failover, with the
// ports of the sentinels. It does what failover_rlock.c does. "default": nothing is set but the
// addresses. "careful": what shortens an outage; see bench/README.md.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;

import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import org.redisson.config.ReadMode;
import org.redisson.config.SentinelServersConfig;

public final class Failover {
    private static final int WORKERS = 4;
    private static final long INSIDE_MS = 5;
    private static final long PAUSE_MS = 10;

    private static RedissonClient redisson;
    private static String tag;

    private Failover() { }

    private static String oneLine(String what, Throwable t) {
        return (what + ": " + t).replace('\n', ' ').replace('\r', ' ');
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static void takeOne(int worker, int number) throws InterruptedException {
        RLock lock = redisson.getLock("fo-" + tag + "-" + worker + "-" + number);
        String where = worker + " " + number + " ";
        long sent = System.nanoTime();
        try {
            lock.lock();
        } catch (RuntimeException e) {
            say("fail " + where + sent + " " + System.nanoTime() + " " + oneLine("lock", e));
            return;
        }
        long granted = System.nanoTime();
        Thread.sleep(INSIDE_MS);
        String error = "-";
        try {
            lock.unlock();
        } catch (RuntimeException e) {
            error = oneLine("unlock", e);
        }
        say("lock " + where + sent + " " + granted + " " + System.nanoTime() + " " + error);
    }

    private static void work(int worker) {
        try {
            for (int number = 1;; number++) {
                takeOne(worker, number);
                Thread.sleep(PAUSE_MS);
            }
        } catch (InterruptedException e) {
            System.exit(1);
        }
    }

    private static Config configure(boolean careful, String[] args) {
        Config config = new Config();
        SentinelServersConfig servers = config.useSentinelServers().setMasterName("mymaster");
        for (int i = 2; i < args.length; i++) {
            servers.addSentinelAddress("redis://127.0.0.1:" + args[i]);
        }
        if (careful) {
            servers.setScanInterval(100)
                .setReadMode(ReadMode.MASTER)
                .setTimeout(1000)
                .setConnectTimeout(1000)
                .setRetryAttempts(100)
                .setRetryDelay(new ConstantDelay(Duration.ofMillis(100)))
                .setReconnectionDelay(new ConstantDelay(Duration.ofMillis(100)));
        }
        return config;
    }

    private static String release(RLock hold) {
        try {
            hold.unlock();
            return "-";
        } catch (RuntimeException e) {
            return oneLine("unlock", e);
        }
    }

    private static RLock take(int number) throws InterruptedException {
        RLock hold = redisson.getLock("fo-" + tag + "-hold-" + number);
        while (true) {
            try {
                hold.lock();
                return hold;
            } catch (RuntimeException e) {
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    // Redisson has no event for a lost lock: its holder believes until it asks.
    public static void main(String[] args) throws Exception {
        tag = args[1];
        redisson = Redisson.create(configure(args[0].equals("careful"), args));
        for (int i = 0; i < WORKERS; i++) {
            int worker = i;
            Thread thread = new Thread(() -> work(worker));
            thread.setDaemon(true);
            thread.start();
        }
        RLock hold = null;
        int number = 0;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("clock")) {
                say("= " + System.nanoTime());
            } else if (line.equals("hold")) {
                String error = hold == null ? "-" : release(hold);
                hold = take(++number);
                say("= " + number + " " + error);
            } else {
                say("= held");
            }
        }
        System.exit(0);
    }
}
