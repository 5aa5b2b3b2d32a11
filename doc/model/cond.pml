/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions (conditions.md V1-V16): NW waiters, each a client of its own with one thread, NSG signallers.
 * The mutex is ideal (core.pml has it) but for its release inside cond_wait, which is a request as the join is.
 * A signaller makes an item under the mutex and signals (with the mutex or after it); a waiter wants one item.
 * LOST WAKE-UP = nothing can happen any more, an item is there, and a live thread sleeps.  Untimed: presence and "until" of a dead
 * client run out some time, those of a live one NX times (stopped, slow); not-after + marker = a marker that stays.
 * -DCOMB: join and release are one script; else two steps.  See REPORT.md for the variants. */
#ifndef NW
#define NW 2
#endif
#ifndef NSG
#define NSG 2
#endif
#ifndef NI
#define NI 2            /* waits of a thread at most; then it leaves */
#endif
#ifndef NF
#define NF 1            /* connection broken (request lost or late, reply lost), message lost, signal doubled */
#endif
#ifndef NK
#define NK 1            /* kills */
#endif
#ifndef NX
#define NX 1            /* presence or until of a live one runs out */
#endif
#ifndef NT
#define NT 1            /* deadlines */
#endif
#ifndef NC
#define NC 0            /* threads cancelled */
#endif
#ifndef NE
#define NE 0            /* keys lost */
#endif
#ifndef NR
#define NR 0            /* restart or failover that forgets the last signals */
#endif
#ifndef BC
#define BC 9            /* which signaller broadcasts */
#endif
#define NID (NW*NI)
#define ID(c) ((c)*NI+n[c]-1)
#define CL(i) ((i)/NI)
#define OUT 0
#define JOIN 1
#define SLEEP 3
#define WOKEN 4
#define LEFT 5
#ifdef NOTICKET
#define TICK(a,b) 1
#else
#define TICK(a,b) ((a)==(b))
#endif
bit LOST;                                  /* the name of the claim; 0 */
byte items, mo, nxt=1, nf=NF, nk=NK, nx=NX, nt=NT, ncn=NC, ne=NE, nr=NR;
byte acq[NW], rqa[NW], gha[NW];            /* acquisition numbers: now, in the request, in the late one */
bit rqg[NW], ghg[NW];                      /* the request says that it is a repetition */
byte st[NID], tk[NID], msg[NID]; bit mk[NID];  /* 0 absent 1 waiting 2 signalled; ticket; message (the ticket in it); marker */
byte ak[NID];                              /* due: 1 ack (it was told that it had been taken), 2 leave (it woke for another reason) */
bit pr[NW], dead[NW]; byte wk[NW], ct[NW], mt[NW];   /* woken 1 told 2 otherwise; confirmed ticket; ticket of a message that came early */
byte n[NW], ph[NW], rq[NW], rv[NW], rt[NW], gh[NW];   /* gh: late request: its n, 0 none */
byte i_, b_, t_; bit m_;

inline wake1() {                            /* the first by ticket who is present; others before him are dropped */
  b_=255; t_=255; i_=0;
  do :: i_<NID -> if :: st[i_]==1 && !pr[CL(i_)] -> st[i_]=0; tk[i_]=0
                     :: st[i_]==1 && pr[CL(i_)] && tk[i_]<t_ -> b_=i_; t_=tk[i_]
                     :: else fi; i_++
     :: else -> break od;
  if :: b_<255 -> st[b_]=2; msg[b_]=(dead[CL(b_)] -> 0 : tk[b_]); tk[b_]=0 :: else fi; b_=0; t_=0; i_=0
}
inline off(i) { st[i]=0; tk[i]=0 }
inline settle(i) { off(i); wake1() }
inline exec(c,nn,aa,gg,r,t) {                  /* the script cond_wait for id (c,nn) */
  b_=(c)*NI+(nn)-1;
#ifdef COMB
  m_=(mo==1+(c) && acq[c]==(aa));
#ifdef REJOIN
  if :: !mk[b_] && st[b_]==0 -> st[b_]=1; tk[b_]=nxt; nxt++; pr[c]=1 :: else fi;
#else
  if :: m_ && st[b_]==0 -> st[b_]=1; tk[b_]=nxt; nxt++; pr[c]=1 :: else fi;
#endif
  if :: m_ -> mo=0 :: else fi; m_=0;
  if :: st[b_]==1 -> r=1 :: st[b_]==2 -> r=2 :: else -> r=3 fi;
#else
  if :: !mk[b_] && st[b_]==0 -> st[b_]=1; tk[b_]=nxt; nxt++; pr[c]=1 :: else fi;
#ifndef NOMARK
  if :: gg -> mk[b_]=1 :: else fi;
#endif
  if :: st[b_]==1 -> r=1 :: st[b_]==2 -> r=2 :: else -> r=3 fi;
#endif
  t=tk[b_]; b_=0
}
#define IN(c) (st[ID(c)]==1)

#ifdef ACKALL
#define LEAVE(c) 1
#else
#define LEAVE(c) (wk[c]==2 -> 2 : 1)
#endif
proctype W(byte c) {
  { skip;
again:
  atomic { mo==0 -> mo=1+c; acq[c]++ }
chk:
  atomic {
    if :: ph[c]==WOKEN -> ak[ID(c)]=LEAVE(c); ph[c]=OUT; wk[c]=0; ct[c]=0   /* once the mutex is ours */
       :: else fi;
    if :: items>0 -> items--; mo=0; ph[c]=LEFT; wk[c]=0; ct[c]=0; mt[c]=0; goto fin
       :: items==0 && n[c]==NI -> mo=0; ph[c]=LEFT; wk[c]=0; ct[c]=0; mt[c]=0; goto fin
       :: else -> n[c]++; wk[c]=0; ph[c]=JOIN; rq[c]=1; rqa[c]=acq[c]; rqg[c]=0;
#ifdef RELFIRST
          mo=0;
#endif
    fi }
join:
  do
  :: atomic { rq[c]==2 -> rq[c]=0; 
       if :: rv[c]==1 -> rv[c]=0; ph[c]=SLEEP; ct[c]=rt[c]; rt[c]=0; if :: mt[c]>0 && TICK(mt[c],ct[c]) -> wk[c]=1 :: else fi; mt[c]=0;
#if !defined(COMB) && !defined(RELFIRST)
             assert(mo==1+c); mo=0;
#endif
             break
          :: else -> rv[c]=0; rt[c]=0; mt[c]=0; ph[c]=WOKEN; if :: wk[c]==2 -> wk[c]=1 :: else fi;
#if defined(COMB) || defined(RELFIRST)
             goto again
#else
             goto chk                               /* the mutex was never given up */
#endif
       fi }
  :: atomic { rq[c]==0 -> rq[c]=1; rqg[c]=1 }                    /* outcome unknown: the same again */
  od;
  do
  :: atomic { wk[c]>0 -> ph[c]=WOKEN; break }
#ifdef ABSENTWAITS
  :: atomic { st[ID(c)]==2 -> ph[c]=WOKEN; break }
#else
  :: atomic { !IN(c) -> 
#ifdef ACKPOLL
       st[ID(c)]=0; }                                  /* the poll takes out what it tells; its answer is on the way */
       atomic { wk[c]=1; ph[c]=WOKEN; break }
#else
       wk[c]=1; ph[c]=WOKEN; break }
#endif
#endif
  :: atomic { IN(c) && !pr[c] -> pr[c]=1 }
  :: atomic { nt>0 -> nt--;                            /* deadline: the program leaves at ETIMEDOUT without a look */
       if :: IN(c) -> st[ID(c)]=0;
#ifndef NOMARK
             mk[ID(c)]=1;
#endif
             ph[c]=LEFT
#ifdef EATS
          :: st[ID(c)]==2 -> st[ID(c)]=0; mk[ID(c)]=1; ph[c]=LEFT   /* ETIMEDOUT though signalled */
          :: !IN(c) && st[ID(c)]!=2 -> ph[c]=WOKEN
#else
          :: else -> wk[c]=1; ph[c]=WOKEN
#endif
       fi; break }
  :: atomic { ncn>0 -> ncn--;
#ifdef PASSLATE
       m_=(st[ID(c)]==2); st[ID(c)]=0; mk[ID(c)]=1; }    /* takes its id out, then signals */
       atomic { if :: m_ -> wake1() :: else fi; m_=0; ph[c]=LEFT; break }
#else
       if :: IN(c) -> st[ID(c)]=0
          :: st[ID(c)]==2 ->
#ifdef NOPASS
             st[ID(c)]=0
#else
             settle(ID(c))
#endif
          :: else fi; mk[ID(c)]=1; ph[c]=LEFT; break }
#endif
  od;
  if :: ph[c]==WOKEN ->
#ifdef ACKWAKE
        atomic { st[ID(c)]=0 }                         /* acknowledged before it has the mutex */
#endif
        goto again
     :: else fi;
fin: ph[c]==LEFT -> false
  } unless { dead[c] }
}

proctype S(byte s) {
  byte bar, low; bit two; skip;
  if
  :: atomic { s!=BC && mo==0 -> items++; wake1() }          /* signals, then unlocks */
  :: atomic { mo==0 -> items++; if :: s==BC -> items++; mo=10+s :: else fi } goto go
  :: atomic { mo==0 -> items++; if :: s==BC -> items++ :: else fi } goto go
  fi; goto out;
go:
  if
  :: atomic { s!=BC -> wake1() }
  :: else ->
     atomic { i_=0; do :: i_<NID -> if :: st[i_]==1 && tk[i_]>bar -> bar=tk[i_] :: else fi; i_++ :: else -> break od; i_=0 }
     do
     :: atomic { b_=255; t_=255; i_=0;
          do :: i_<NID -> if :: st[i_]==1 && tk[i_]<=bar && tk[i_]<t_ -> b_=i_; t_=tk[i_] :: else fi; i_++ :: else -> break od;
          low=b_; if :: b_<255 -> st[b_]=0; msg[b_]=(pr[CL(b_)] && !dead[CL(b_)] -> tk[b_] : 0); tk[b_]=0 :: else fi; b_=0; t_=0; i_=0;
        if :: low==255 -> low=0; bar=0; break :: else fi }
     od
  fi;
out: atomic { if :: nf>0 && !two -> nf--; two=1; low=0; goto go :: true fi };   /* reply lost, repeated */
  atomic { if :: mo==10+s -> mo=0 :: else fi }
}

inline e_msg(i) {
  if :: dead[CL(i)] || ak[i]>0 -> skip
     :: !dead[CL(i)] && ak[i]==0 && n[CL(i)]>0 && ID(CL(i))==i && ph[CL(i)]==JOIN -> mt[CL(i)]=msg[i]
     :: !dead[CL(i)] && ak[i]==0 && n[CL(i)]>0 && ID(CL(i))==i && ph[CL(i)]==SLEEP -> if :: TICK(msg[i],ct[CL(i)]) -> wk[CL(i)]=1 :: else fi
     :: else ->
        if :: st[i]==2 && (ID(CL(i))!=i || ph[CL(i)]==LEFT) -> settle(i) :: else fi   /* nobody's any more: passed on */
  fi; msg[i]=0 }
#ifdef NOOVERDUE
#define OVER(i) 0
#else
#define OVER(i) (st[i]==2 && (dead[CL(i)] || (ID(CL(i))!=i && ak[i]==0) || ph[CL(i)]==LEFT))
#endif
#define EC(c) :: atomic { rq[c]==1 -> exec(c,n[c],rqa[c],rqg[c],rv[c],rt[c]); rq[c]=2 } \
  :: atomic { gh[c]>0 -> if :: exec(c,gh[c],gha[c],ghg[c],m_,t_); m_=0; t_=0 :: skip fi; gh[c]=0; gha[c]=0; ghg[c]=0 } \
  :: atomic { dead[c] && pr[c] -> pr[c]=0 }
#define EI(i) :: atomic { msg[i]>0 -> e_msg(i) } \
  :: atomic { ak[i]>0 && !dead[CL(i)] -> if :: ak[i]==2 && st[i]==2 -> ak[i]=0; settle(i) :: else -> ak[i]=0; off(i) fi } \
  :: atomic { OVER(i) -> settle(i) }
proctype Env() {
end:
  do
  EC(0)
#if NW>1
  EC(1)
#endif
#if NW>2
  EC(2)
#endif
  EI(0) EI(1)
#if NID>2
  EI(2)
#endif
#if NID>3
  EI(3)
#endif
#if NID>4
  EI(4)
#endif
#if NID>5
  EI(5)
#endif
#if NID>6
  EI(6)
#endif
#if NID>7
  EI(7)
#endif
#if NID>8
  EI(8)
#endif
  od
}
#define FC(c) :: atomic { nf>0 && rq[c]==1 -> nf--; if :: gh[c]==0 -> gh[c]=n[c]; gha[c]=rqa[c]; ghg[c]=rqg[c] :: skip fi; rq[c]=0 } \
  :: atomic { nf>0 && rq[c]==2 -> nf--; rq[c]=0; rv[c]=0; rt[c]=0 } \
  :: atomic { nk>0 && !dead[c] && ph[c]!=LEFT && n[c]>0 -> nk--; dead[c]=1; wk[c]=0; ct[c]=0; mt[c]=0; clear(c); if :: mo==1+c -> mo=0 :: else fi; \
       if :: rq[c]==1 && gh[c]==0 -> gh[c]=n[c]; gha[c]=rqa[c]; ghg[c]=rqg[c] :: else fi; rq[c]=0; rv[c]=0; rt[c]=0 } \
  :: atomic { nx>0 && pr[c] && !dead[c] -> nx--; pr[c]=0 }
#define FI(i) :: atomic { nf>0 && msg[i]>0 -> nf--; msg[i]=0 } \
  :: atomic { nx>0 && st[i]==2 && !OVER(i) -> nx--; if :: NOOV -> skip :: else -> settle(i) fi }
#ifdef NOOVERDUE
#define NOOV 1
#else
#define NOOV 0
#endif
inline clear(c) { i_=(c)*NI; do :: i_<((c)+1)*NI -> msg[i_]=0; ak[i_]=0; i_++ :: else -> break od; i_=0 }
proctype Faults() {
  byte i, c;
  do
  :: break
  FC(0)
#if NW>1
  FC(1)
#endif
#if NW>2
  FC(2)
#endif
  FI(0) FI(1)
#if NID>2
  FI(2)
#endif
#if NID>3
  FI(3)
#endif
#if NID>4
  FI(4)
#endif
#if NID>5
  FI(5)
#endif
  :: atomic { ne>0 -> ne--; i=0; do :: i<NID ->
#ifdef KEY2
       if :: st[i]==2 -> off(i) :: else fi;            /* only `signalled` is evicted */
#else
       off(i);
#endif
       i++ :: else -> break od; i=0 }
  :: atomic { nr>0 -> nr--; i=0; do :: i<NID -> if :: st[i]==2 && ak[i]==0 -> st[i]=1; tk[i]=nxt; nxt++; msg[i]=0 :: else fi; i++ :: else -> break od; i=0;
#ifndef NORECON
       c=0; do :: c<NW -> if :: ph[c]==JOIN || ph[c]==SLEEP -> wk[c]=2 :: else fi; c++ :: else -> break od; c=0
#endif
     }
  od
}
proctype Mon() {
end:
  timeout -> 
  assert(LOST || !(items>0 && ((!dead[0] && ph[0]==SLEEP)
#if NW>1
    || (!dead[1] && ph[1]==SLEEP)
#endif
#if NW>2
    || (!dead[2] && ph[2]==SLEEP)
#endif
  )));
  assert(mo==0)
}
init { atomic { run W(0);
#if NW>1
  run W(1);
#endif
#if NW>2
  run W(2);
#endif
  run S(0);
#if NSG>1
  run S(1);
#endif
  run Env(); run Faults(); run Mon() } }
