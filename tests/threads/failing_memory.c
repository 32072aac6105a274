// To be preloaded: makes one allocation fail, the n-th after `fail_allocation(n)`, on any thread.
// It stands before malloc and its relatives, mmap among them, and so before operator new and the
// stacks of new threads. What the dynamic loader asks for is left alone: it ends the process where
// it gets nothing, and nobody can prevent that.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static atomic_long countdown;
static atomic_long failures;
static const char *loader_begin, *loader_end;

static int find_loader(struct dl_phdr_info* info, size_t size, void* data) {
    (void)size, (void)data;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "ld-linux") == NULL) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)* part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        loader_begin = (const char*)info->dlpi_addr + part->p_vaddr;
        loader_end = loader_begin + part->p_memsz;
    }
    return 1;
}

// The n-th allocation from here on fails; 0: none.
void fail_allocation(long n) {
    if (loader_begin == NULL) dl_iterate_phdr(find_loader, NULL);
    atomic_store(&failures, 0);
    atomic_store(&countdown, n);
}

// How many have failed since.
long failed_allocations(void) { return atomic_load(&failures); }

static int fails(const char* caller) {
    if (atomic_load(&countdown) <= 0) return 0;
    if (caller >= loader_begin && caller < loader_end) return 0;
    if (atomic_fetch_sub(&countdown, 1) != 1) return 0;
    atomic_fetch_add(&failures, 1);
    errno = ENOMEM;
    return 1;
}

#define FAILS fails((const char*)__builtin_return_address(0))

void* malloc(size_t size) { return FAILS ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return FAILS ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return FAILS ? NULL : __libc_realloc(old, size); }
void* memalign(size_t unit, size_t size) { return FAILS ? NULL : __libc_memalign(unit, size); }
void* aligned_alloc(size_t unit, size_t size) { return FAILS ? NULL : __libc_memalign(unit, size); }
int posix_memalign(void** block, size_t unit, size_t size) {
    if (FAILS) return ENOMEM;
    *block = __libc_memalign(unit, size);
    return *block == NULL ? ENOMEM : 0;
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
    if (FAILS) return MAP_FAILED;
    return (void*)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
