/* Loaded before libc (LD_PRELOAD): fails, or kills the process at, the n-th system call on files
   under a folder. Everything else passes through. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long first = -1, last = -1, count;
static int fault;

enum { KILL_BEFORE = -1, KILL_AFTER = -2 };

/* Calls number `from` to `to` fail with the error `kind`, or the first of them is a SIGKILL. */
void faults_arm(const char *path, long from, long to, int kind) {
    snprintf(folder, sizeof folder, "%s", path);
    first = from;
    last = to;
    fault = kind;
    count = 0;
}

long faults_count(void) { return count; }

static int is_under(const char *path) {
    size_t length = strlen(folder);
    return length && path && !strncmp(path, folder, length) &&
           (path[length] == '/' || path[length] == 0);
}

static int is_file_under(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_under(path);
}

/* 0: go on; 1: fail with errno; 2: be killed after the call. */
static int due(int counts) {
    if (!counts || first < 0) return 0;
    long number = count++;
    if (number < first || number > last) return 0;
    if (fault == KILL_BEFORE) raise(SIGKILL);
    if (fault == KILL_AFTER) return 2;
    errno = fault;
    return 1;
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))
#define CALL(type, counts, call)               \
    do {                                       \
        int what = due(counts);                \
        if (what == 1) return -1;              \
        type result = call;                    \
        if (what == 2) raise(SIGKILL);         \
        return result;                         \
    } while (0)

#define OPEN(name)                                                                         \
    int name(const char *path, int flags, ...) {                                           \
        va_list rest;                                                                      \
        va_start(rest, flags);                                                             \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;            \
        va_end(rest);                                                                      \
        CALL(int, is_under(path), REAL(int, name, const char *, int, ...)(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void *data, size_t size) {
    int what = due(is_file_under(file));
    /* A disk that fills up takes a part first. */
    if (what == 1 && !(fault == ENOSPC && size > 1 && count - 1 == first)) return -1;
    if (what == 1) size /= 2;
    ssize_t result = REAL(ssize_t, write, int, const void *, size_t)(file, data, size);
    if (what == 2) raise(SIGKILL);
    return result;
}

ssize_t read(int file, void *data, size_t size) {
    CALL(ssize_t, is_file_under(file), REAL(ssize_t, read, int, void *, size_t)(file, data, size));
}

int fsync(int file) { CALL(int, is_file_under(file), REAL(int, fsync, int)(file)); }

int ftruncate(int file, off_t size) {
    CALL(int, is_file_under(file), REAL(int, ftruncate, int, off_t)(file, size));
}

int ftruncate64(int file, off64_t size) {
    CALL(int, is_file_under(file), REAL(int, ftruncate64, int, off64_t)(file, size));
}

int rename(const char *from, const char *to) {
    CALL(int, is_under(to), REAL(int, rename, const char *, const char *)(from, to));
}

int unlink(const char *path) {
    CALL(int, is_under(path), REAL(int, unlink, const char *)(path));
}

int mkdir(const char *path, mode_t mode) {
    CALL(int, is_under(path), REAL(int, mkdir, const char *, mode_t)(path, mode));
}

/* The descriptor is gone whatever close says, as on Linux. */
int close(int file) {
    int what = due(is_file_under(file));
    int error = errno;
    int result = REAL(int, close, int)(file);
    if (what == 2) raise(SIGKILL);
    if (what != 1) return result;
    errno = error;
    return -1;
}
