/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlocks: no false alarm (doc/design/deadlock.md, E1-E8, E12). NT threads, each a client
 * of its own, and NL exclusive locks; thread i has lock i at first, and thread 0 sends
 * probes. Threads take, wait (NA times in all), time out, begin again, and release: a
 * grant is written first and read later. A hold may be lost (NF times: force, lease).
 *
 * A probe is LOOK, the script on its way to the server, or ASK, the message on its way to
 * the holder. Either may stay away for ever. `cyc`: thread 0 is in a cycle of edges at
 * this very moment.
 *
 * Claim ALARM: at an alarm a cycle stood at the moment between the rounds; that is
 * stronger than at some time. Claim REACHED, which is to fail, says that there is no
 * alarm.
 */
#ifndef NT
#define NT 3
#endif
#ifndef NL
#define NL 3
#endif
#ifndef NA
#define NA 5            /* waits that begin, free locks taken; at first thread i has lock i */
#endif
#ifndef NF
#define NF 1
#endif
#ifndef NR
#define NR 3            /* rounds */
#endif
byte own[NL], hid[NL]; bit ent[NL];        /* holder+1, its acquisition, entered */
byte wl[NT], w[NT], na=NA, nf=NF;          /* lock waited for +1, number of the wait */
bit ever, real, cyc, alarmed; byte x_, k_, r_;
bit ALARM = 1, REACHED = 1; /* the claims */
typedef P { byte st; byte lock; byte who; byte hid; byte round; int dig };   /* st 0 none 1 LOOK 2 ASK */
P p[2];
byte round; int dig1; bit have1;
#ifdef BREAK_NOWNUM
#define NUM(t) 0
#else
#define NUM(t) w[t]
#endif
#define KEY(t) ((t)*16+NUM(t)+1)
/* only the search for an alarm breaks it */
#ifdef BREAK_REACH
#define BREACH REACHED=0; assert(REACHED)
#else
#define BREACH skip
#endif
inline cycle() {            /* sets cyc */
  x_=0; k_=0; cyc=0;
  do
  :: k_<NT && wl[x_]>0 && own[wl[x_]-1]>0 && ent[wl[x_]-1] ->
       x_=own[wl[x_]-1]-1; k_++; if :: x_==0 -> cyc=1; break :: else fi
  :: else -> break
  od; x_=0; k_=0;
  if :: cyc -> ever=1 :: else fi
}
inline free(l) {            /* hand-over to some waiter, who has not read it yet */
  own[l]=0; ent[l]=0;
  if :: wl[0]==l+1 -> own[l]=1; hid[l]++
     :: wl[1]==l+1 -> own[l]=2; hid[l]++
#if NT>2
     :: wl[2]==l+1 -> own[l]=3; hid[l]++
#endif
     :: else fi
}
proctype T(byte t) {
  byte l;
end:
  do
  :: atomic { wl[t]==0 && na>0 -> l=0; do :: l<NL-1 -> l++ :: break od;
       if :: own[l]==0 -> own[l]=t+1; hid[l]++; ent[l]=1; na--
          :: own[l]!=0 && own[l]!=t+1 -> wl[t]=l+1; w[t]++; na--
          :: else fi; l=0; cycle() }
  :: atomic { wl[t]==0 -> l=0; do :: l<NL-1 -> l++ :: break od;
       if :: own[l]==t+1 -> free(l) :: else fi; l=0; cycle() }
  :: atomic { wl[t]>0 && own[wl[t]-1]==t+1 -> ent[wl[t]-1]=1; wl[t]=0; cycle() }
  :: atomic { wl[t]>0 && own[wl[t]-1]!=t+1 -> wl[t]=0; cycle() }          /* time-out */
  od
}
proctype Loss() {
  byte l;
end:
  do :: atomic { nf>0 && (wl[0]>0 || wl[1]>0) -> l=0; do :: l<NL-1 -> l++ :: break od; if :: own[l]>0 && ent[l] -> nf--; free(l) :: else fi; l=0; cycle() } od
}
inline drop(i) { p[i].st=0; p[i].lock=0; p[i].who=0; p[i].hid=0; p[i].round=0; p[i].dig=0 }
inline back(i) {             /* the probe is with thread 0 again, which waits in the same wait */
  if
#ifdef BREAK_ONEROUND
  :: p[i].round==round -> ALARM=ever; assert(ALARM)
#else
#ifdef BREAK_NONONCE
  :: !have1 -> have1=1; dig1=p[i].dig; real=cyc
  :: have1 -> if :: p[i].dig==dig1 -> ALARM=real; assert(ALARM) :: else fi
#else
  :: p[i].round==round && !have1 -> have1=1; dig1=p[i].dig; real=cyc      /* now the next round leaves, see N */
  :: p[i].round==round && have1==1 && r_==round -> if :: p[i].dig==dig1 -> ALARM=real; assert(ALARM); alarmed=1; BREACH :: else fi
#endif
#endif
  :: else fi
}
#ifdef ONETOK
#define PICK i=0
#else
#define PICK if :: p[0].st==0 -> i=0 :: p[1].st==0 -> i=1 :: else -> i=0 fi
#endif
proctype N() {               /* thread 0's client, the holders' clients, the server */
  byte i;
end:
  do
  :: atomic { wl[0]>0 && round<NR ->                  /* a first round; what was known is forgotten */
       round++; have1=0; r_=0; dig1=0; real=0; ever=cyc;
       PICK;
       p[i].st=1; p[i].lock=wl[0]; p[i].round=round; p[i].dig=KEY(0); p[i].who=0; p[i].hid=0; i=0 }
#ifndef BREAK_ONEROUND
  :: atomic { wl[0]>0 && have1 && r_==0 && round<NR -> round++; r_=round;
       PICK;
       p[i].st=1; p[i].lock=wl[0]; p[i].round=round; p[i].dig=KEY(0); p[i].who=0; p[i].hid=0; i=0 }
#endif
#define STEP(i) \
  :: atomic { p[i].st==1 -> if :: own[p[i].lock-1]>0 -> p[i].st=2; p[i].who=own[p[i].lock-1]-1; p[i].hid=hid[p[i].lock-1] :: else -> drop(i) fi } \
  :: atomic { p[i].st==2 -> \
       if :: wl[p[i].who]>0 && INSIDE(i) -> \
             if :: p[i].who==0 && (p[i].dig & 15)>=0 && FIRST(i)==KEY(0) -> back(i); drop(i) \
                :: p[i].who==0 && FIRST(i)!=KEY(0) -> drop(i) \
                :: p[i].who>0 && p[i].dig < 262144 -> p[i].dig=p[i].dig*64+KEY(p[i].who); p[i].lock=wl[p[i].who]; p[i].who=0; p[i].hid=0; p[i].st=1 \
                :: else -> drop(i) fi \
          :: else -> drop(i) fi }
#ifdef BREAK_THREADASK
#define INSIDE(i) 1
#else
#define INSIDE(i) (own[p[i].lock-1]==p[i].who+1 && hid[p[i].lock-1]==p[i].hid && ent[p[i].lock-1])
#endif
#define FIRST(i) (p[i].dig>=262144 -> p[i].dig/262144 : (p[i].dig>=4096 -> p[i].dig/4096 : (p[i].dig>=64 -> p[i].dig/64 : p[i].dig)))
  STEP(0)
#ifndef ONETOK
  STEP(1)
#endif
  od
}

init { atomic { own[0]=1; ent[0]=1; own[1]=2; ent[1]=1;
#if NT>2
  own[2]=3; ent[2]=1;
#endif
  run T(0); run T(1);
#if NT>2
  run T(2);
#endif
  run Loss(); run N() } }
