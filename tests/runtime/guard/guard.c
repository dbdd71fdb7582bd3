/* Guard pages round what chosen libraries allocate; preloaded by tests/runtime/guarded.py.
 *
 * What a watched library asks for ends at a page that nobody may touch, stands on memory filled
 * with 0xFF (NaN in every float type), and is taken away when it is freed: a read or write behind
 * it, and any use after its end, stops the process at the instruction. What lies in front of it,
 * and between its end and the page, is checked when it is freed. Everything else is glibc's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { PAGE = 4096, SLACK = 0xA5, FRESH = 0xFF, FREED = 1, RANGES = 16 };
static const size_t ARENA = (size_t)1 << 43; /* addresses are never used twice */
static const size_t RECORDS = (size_t)1 << 28;

struct record {
  uintptr_t begin; /* of the whole block */
  uintptr_t data;
  size_t size;
  unsigned pages, state;
};

static struct {
  uintptr_t begin, end;
  size_t least; /* bytes, from which on what it allocates is guarded */
} watched[RANGES];
static int ranges;
static uintptr_t arena, next_block;
static struct record *records;
static size_t count, live, peak, refused;
static struct sigaction before;
static volatile int lock;

static void acquire(void) {
  while (__sync_lock_test_and_set(&lock, 1)) {
  }
}

static void release(void) { __sync_lock_release(&lock); }

static int is_watched(const void *caller, size_t size) {
  uintptr_t at = (uintptr_t)caller;
  for (int i = 0; i < ranges; ++i)
    if (at >= watched[i].begin && at < watched[i].end) return size >= watched[i].least;
  return 0;
}

static int is_ours(const void *p) {
  return arena && (uintptr_t)p >= arena && (uintptr_t)p < arena + ARENA;
}

/* The record of the block that an address is in, or the last one before it. */
static struct record *record_of(uintptr_t at) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (records[middle].begin <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? &records[low - 1] : NULL;
}

static void say(const char *what, const struct record *r, long offset) {
  char text[256];
  int n = snprintf(text, sizeof text, "guard: %s a buffer of %zu bytes, at offset %ld of it\n",
                   what, r->size, offset);
  if (n > 0 && write(2, text, (size_t)n) < 0) return;
}

static void on_fault(int number, siginfo_t *info, void *context) {
  uintptr_t at = (uintptr_t)info->si_addr;
  struct record *r = is_ours(info->si_addr) ? record_of(at) : NULL;
  if (r != NULL) {
    /* the closed page between two buffers: more often it is run into from the first */
    if (at < r->begin + PAGE && r > records) --r;
    const char *what = at < r->data              ? "access in front of"
                       : at >= r->data + r->size ? "access behind"
                                                 : "access after the end of";
    say(what, r, (long)(at - r->data));
  }
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(number);
  signal(number, SIG_DFL);
  raise(number);
}

/* Guard what code between two addresses allocates from now on, from `bytes` bytes on. */
__attribute__((visibility("default"))) void guard_watch(uintptr_t begin, uintptr_t end,
                                                        size_t bytes) {
  acquire();
  if (!arena) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *space = mmap(NULL, ARENA, PROT_NONE, flags, -1, 0);
    void *table = mmap(NULL, RECORDS * sizeof(struct record), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (space == MAP_FAILED || table == MAP_FAILED) {
      perror("guard: no address space");
      abort();
    }
    arena = next_block = (uintptr_t)space;
    records = table;
  }
  if (ranges < RANGES) {
    watched[ranges].begin = begin;
    watched[ranges].end = end;
    watched[ranges].least = bytes;
    ++ranges;
  }
  release();
}

/* Say which buffer a fault belongs to; called after other handlers of SIGSEGV are in place. */
__attribute__((visibility("default"))) void guard_report(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
}

/* How many buffers were guarded, and how many were not for want of mappings. */
__attribute__((visibility("default"))) size_t guard_count(void) { return count; }
__attribute__((visibility("default"))) size_t guard_refused(void) { return refused; }

static void *guarded(size_t alignment, size_t size) {
  if (alignment < 16) alignment = 16;
  size_t pages = (size + alignment + PAGE - 1) / PAGE + 1;
  acquire();
  uintptr_t begin = next_block;
  size_t length = pages * PAGE;
  /* a page that stays closed on both sides; live blocks are two mappings each */
  if (count + 1 >= RECORDS || begin + length + 2 * PAGE > arena + ARENA || live >= 30000 ||
      mprotect((void *)(begin + PAGE), length, PROT_READ | PROT_WRITE)) {
    ++refused;
    release();
    return NULL;
  }
  next_block = begin + PAGE + length;
  uintptr_t end = begin + PAGE + length;
  uintptr_t data = (end - size) & ~(uintptr_t)(alignment - 1);
  struct record *r = &records[count++];
  r->begin = begin;
  r->data = data;
  r->size = size;
  r->pages = (unsigned)pages;
  r->state = 0;
  if (++live > peak) peak = live;
  release();
  memset((void *)(begin + PAGE), SLACK, data - begin - PAGE);
  memset((void *)data, FRESH, size);
  memset((void *)(data + size), SLACK, end - data - size);
  return (void *)data;
}

static void check_slack(const struct record *r, uintptr_t from, uintptr_t to, const char *what) {
  for (uintptr_t p = from; p < to; ++p)
    if (*(unsigned char *)p != SLACK) {
      say(what, r, (long)(p - r->data));
      abort();
    }
}

static void put_away(void *p) {
  acquire();
  struct record *r = record_of((uintptr_t)p);
  int known = r != NULL && r->data == (uintptr_t)p;
  int freed = known && r->state == FREED;
  if (known && !freed) {
    r->state = FREED;
    --live;
  }
  release();
  if (!known || freed) {
    if (known)
      say("freed twice:", r, 0);
    else if (r != NULL)
      say("freed what is no beginning of", r, (long)((uintptr_t)p - r->data));
    abort();
  }
  uintptr_t begin = r->begin + PAGE, end = begin + (size_t)r->pages * PAGE;
  check_slack(r, begin, r->data, "written in front of");
  check_slack(r, r->data + r->size, end, "written behind");
  /* mapped anew, so that it becomes one mapping with its neighbours: their number is limited */
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap((void *)begin, end - begin, PROT_NONE, flags, -1, 0) == MAP_FAILED) abort();
}

#define CALLER __builtin_return_address(0)
#define EXPORT __attribute__((visibility("default")))

static void *anywhere(const void *caller, size_t alignment, size_t size) {
  return is_watched(caller, size) ? guarded(alignment, size) : NULL;
}

EXPORT void *malloc(size_t size) {
  void *p = ranges ? anywhere(CALLER, 16, size) : NULL;
  return p ? p : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size) {
  size_t total;
  if (__builtin_mul_overflow(n, size, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  void *p = ranges ? anywhere(CALLER, 16, total) : NULL;
  if (p) return memset(p, 0, total);
  return __libc_calloc(n, size);
}

static void *aligned(const void *caller, size_t alignment, size_t size) {
  void *p = ranges ? anywhere(caller, alignment, size) : NULL;
  return p ? p : __libc_memalign(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) { return aligned(CALLER, alignment, size); }

EXPORT void *memalign(size_t alignment, size_t size) { return aligned(CALLER, alignment, size); }

EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  *out = aligned(CALLER, alignment, size);
  return *out ? 0 : ENOMEM;
}

EXPORT void free(void *p) {
  if (is_ours(p))
    put_away(p);
  else
    __libc_free(p);
}

EXPORT void *realloc(void *p, size_t size) {
  if (p == NULL) {
    void *fresh = ranges ? anywhere(CALLER, 16, size) : NULL;
    return fresh ? fresh : __libc_malloc(size);
  }
  if (!is_ours(p)) return __libc_realloc(p, size);
  struct record *r = record_of((uintptr_t)p);
  void *moved = guarded(16, size);
  if (moved == NULL) moved = __libc_malloc(size);
  if (moved != NULL) {
    memcpy(moved, p, r->size < size ? r->size : size);
    put_away(p);
  }
  return moved;
}
