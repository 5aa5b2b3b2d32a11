/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlocks: once probes get through, each cycle is found, and has one victim
 * (doc/design/deadlock.md, E4-E8). A standing situation: thread t waits for a lock that some
 * others hold (several: readers). Each thread in it probes, NR rounds; NF messages are
 * lost.
 *
 * TOPO 1: a ring of 3. 2: a ring of 0 and 1, and 2 waits for it from outside. 3: 0 waits
 * for the readers 1 and 2, and both wait for 0. fail: which threads may get EDEADLK, in all
 * 8 choices. A victim leaves its lock to the one that waits, which goes on and leaves its
 * own.
 *
 * Claim FOUND: each cycle ends by its victim; where no thread may fail, each thread in it
 * learns of it. Claim ONE: a single cycle has one victim at most, and never the outsider.
 */
#ifndef TOPO
#define TOPO 1
#endif
#ifndef NF
#define NF 2
#endif
#ifndef NR
#define NR 4
#endif
#define E(a,b) edge[(a)*3+(b)]
bit edge[9], fail[3], wait[3], told[3], gave[3]; byte nv, nf=NF;
bit FOUND = 1, ONE = 1; /* the claims */
typedef M { bit on; byte rnd; byte vic; byte path };      /* path: set of threads, bit t; vic: key+1 of the greatest that may fail */
M m[27];                     /* of initiator i, from a to b: i*9+a*3+b */
#define SL(i,a,b) m[(i)*9+(a)*3+(b)]
#define ON(i,b) (m[(i)*9+(b)].on || m[(i)*9+3+(b)].on || m[(i)*9+6+(b)].on)
byte rnd[3], cur[3], prev[3], seen[9], t_;      /* cur, prev: digests that came back in this round and in the one before, as sets */
#define BIT(t) (1<<(t))
#define UP(v,t) (fail[t] && (t)+1>(v) -> (t)+1 : (v))
#ifdef BREAK_TOLDONCE            /* who was told of one cycle asks no more */
#define GOON(t) (!told[t])
#else
#define GOON(t) 1
#endif
inline send(in_,by_,rn_,vi_,pa_) {    /* to every holder of what by_ waits for */
  t_=0;
  do :: t_<3 -> if :: E(by_,t_) && !SL(in_,by_,t_).on -> SL(in_,by_,t_).on=1; SL(in_,by_,t_).rnd=rn_; SL(in_,by_,t_).vic=vi_; SL(in_,by_,t_).path=pa_ :: else fi; t_++
     :: else -> break od; t_=0
}
inline leave(by_) {            /* the wait of t is over, and soon its hold: nobody waits for it any more */
  wait[by_]=0; t_=0; do :: t_<3 -> E(by_,t_)=0; t_++ :: else -> break od; t_=0
}
proctype T(byte t) {
  byte j, k, v, pa, r;
end:
  do
  :: atomic { wait[t] && rnd[t]<NR && GOON(t) && !ON(t,0) && !ON(t,1) && !ON(t,2) ->     /* the next round, when nothing of the last is on its way */
       rnd[t]++;
#ifndef BREAK_ONEDIG
       prev[t]=cur[t]; cur[t]=0;
#endif
       v=UP(0,t); pa=BIT(t); r=rnd[t]; send(t,t,r,v,pa); v=0; pa=0; r=0 }
  :: atomic { (ON(0,t) || ON(1,t) || ON(2,t)) ->
       if :: ON(0,t) -> j=0 :: ON(1,t) -> j=1 :: ON(2,t) -> j=2 fi;
       if :: SL(j,0,t).on -> k=0 :: SL(j,1,t).on -> k=1 :: SL(j,2,t).on -> k=2 fi;
       r=SL(j,k,t).rnd; v=SL(j,k,t).vic; pa=SL(j,k,t).path; SL(j,k,t).on=0; SL(j,k,t).rnd=0; SL(j,k,t).vic=0; SL(j,k,t).path=0; k=0;
       if :: nf>0 -> nf-- 
          :: wait[t] && j==t && r==rnd[t] ->
#ifdef BREAK_ONEDIG
               if :: cur[t]!=pa -> cur[t]=pa                      /* only the last digest is kept */
#else
               cur[t]=cur[t] | (1<<pa);
               if :: (prev[t] & (1<<pa))==0 -> skip               /* suspected; the next round decides */
#endif
                  :: else -> told[t]=1;
                     if :: v==t+1 -> nv++; gave[t]=1; leave(t) :: else fi
               fi
          :: wait[t] && j!=t && seen[j*3+t]<r -> seen[j*3+t]=r; v=UP(v,t); pa=(pa | BIT(t)); send(j,t,r,v,pa)
          :: else
       fi; j=0; r=0; v=0; pa=0 }
  :: atomic { !wait[t] && (E(0,t) || E(1,t) || E(2,t)) ->         /* unlocks */
       j=0; do :: j<3 -> E(j,t)=0; if :: wait[j] && !E(j,0) && !E(j,1) && !E(j,2) -> wait[j]=0 :: else fi; j++ :: else -> break od; j=0 }
  od
}
#define CLAIM(name, holds) name = (holds); assert(name)
proctype Mon() {
end: timeout ->
#if TOPO==3
  CLAIM(FOUND, !(fail[0] || (fail[1] && fail[2])) || !wait[0])
#else
  CLAIM(ONE, nv<=1);
#if TOPO==2
  CLAIM(ONE, !gave[2]);
  CLAIM(FOUND, !(fail[0] || fail[1]) || (nv==1 && !wait[0] && !wait[1]));
  CLAIM(FOUND, fail[0] || fail[1] || (told[0] && told[1]))
#else
  CLAIM(FOUND, !(fail[0] || fail[1] || fail[2]) || (nv==1 && !wait[0] && !wait[1] && !wait[2]));
  CLAIM(FOUND, fail[0] || fail[1] || fail[2] || (told[0] && told[1] && told[2]))
#endif
#endif
}
init { atomic {
  if :: fail[0]=1 :: skip fi; if :: fail[1]=1 :: skip fi; if :: fail[2]=1 :: skip fi;
  wait[0]=1; wait[1]=1; wait[2]=1;
#if TOPO==1
  E(0,1)=1; E(1,2)=1; E(2,0)=1;
#elif TOPO==2
  E(0,1)=1; E(1,0)=1; E(2,0)=1;
#else
  E(0,1)=1; E(0,2)=1; E(1,0)=1; E(2,0)=1;
#endif
  run T(0); run T(1); run T(2); run Mon() } }
