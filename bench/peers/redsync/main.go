// SPDX-License-Identifier: Apache-2.0

// redsync's mutex, for bench/peer.c: redsync kind name clients. One client; bench starts one
// process for each.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const warmUp = 200 * time.Millisecond

// Tries as often as it takes; by default it gives up after 32 tries.
const tries = 1 << 30

// Locks and unlocks until the end of the round. Returns how often.
func work(lock *redsync.Mutex, until time.Time) int {
	pairs := 0
	for time.Now().Before(until) {
		if err := lock.Lock(); err != nil {
			panic(err)
		}
		if ok, err := lock.Unlock(); !ok || err != nil {
			panic(err)
		}
		if time.Now().Before(until) {
			pairs++
		}
	}
	return pairs
}

func main() {
	name := os.Args[2]
	options, err := redis.ParseURL(os.Getenv("RLOCK_URL"))
	if err != nil {
		panic(err)
	}
	rs := redsync.New(goredis.NewPool(redis.NewClient(options)))
	mutex := func(name string) *redsync.Mutex {
		return rs.NewMutex(name, redsync.WithExpiry(30*time.Second), redsync.WithTries(tries))
	}
	work(mutex(fmt.Sprintf("%s-warm-%d", name, os.Getpid())), time.Now().Add(warmUp))
	lock := mutex(name)
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var settle, length int
		if _, err := fmt.Sscanf(strings.TrimSpace(in.Text()), "run %d %d", &settle, &length); err != nil {
			panic(err)
		}
		start := time.Now().Add(time.Duration(settle) * time.Microsecond)
		time.Sleep(time.Until(start))
		fmt.Println("did", work(lock, start.Add(time.Duration(length)*time.Microsecond)))
	}
}
