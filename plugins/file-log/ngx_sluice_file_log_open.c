
/*
 * Opens a file to log to (ngx_sluice_file_log.h).  A path comes from whoever
 * may change the configuration, who is not to write what the gateway itself
 * lives on: its prefix but for logs/, its own logs, what a link points at,
 * devices.
 */


#include "ngx_sluice_file_log.h"

#include <limits.h>


#define NGX_SLUICE_FILE_LOG_MODE  0644         /* as Kong's */


static ngx_int_t ngx_sluice_file_log_folder(int dir, u_char *why);
static ngx_uint_t ngx_sluice_file_log_is_of_kernel(const char *folder);
static ngx_uint_t ngx_sluice_file_log_is_in(const char *path,
    const char *folder);
static ngx_uint_t ngx_sluice_file_log_is_own(const char *path,
    const struct stat *st);
static int ngx_sluice_file_log_open_in(int dir, const char *name, u_char *why);
static ngx_int_t ngx_sluice_file_log_check(int fd, u_char *why);


int
ngx_sluice_file_log_open(const char *path, u_char *why)
{
    int         fd, dir;
    char        full[PATH_MAX], *name;
    u_char     *end;
    ngx_str_t   prefix;

    if (ngx_strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }

    if (ngx_strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }

    ngx_str_null(&prefix);

    if (path[0] != '/') {
        prefix = ngx_cycle->prefix;
    }

    end = ngx_snprintf((u_char *) full, sizeof(full), "%V%s%Z", &prefix, path);
    name = strrchr(full, '/');

    if (name == NULL || end[-1] != '\0') {
        ngx_sluice_file_log_error(why, "open()", ENAMETOOLONG);
        return -1;
    }

    if (ngx_sluice_file_log_is_own(full, NULL)) {
        (void) ngx_sprintf(why, "it is a log of the gateway itself%Z");
        return -1;
    }

    *name++ = '\0';

    dir = open(full[0] ? full : "/", O_PATH|O_DIRECTORY|O_CLOEXEC);

    if (dir == -1) {
        ngx_sluice_file_log_error(why, "open() of its folder", ngx_errno);
        return -1;
    }

    fd = ngx_sluice_file_log_folder(dir, why) == NGX_OK
         ? ngx_sluice_file_log_open_in(dir, name, why) : -1;

    (void) close(dir);

    return fd;
}


/* By what is open: nobody puts another folder in its place meanwhile. */

static ngx_int_t
ngx_sluice_file_log_folder(int dir, u_char *why)
{
    char      link[sizeof("/proc/self/fd/") + NGX_INT_T_LEN];
    char      folder[PATH_MAX], own[PATH_MAX], prefix[PATH_MAX];
    char      logs[PATH_MAX + sizeof("/logs")];
    ssize_t   n;

    (void) ngx_sprintf((u_char *) link, "/proc/self/fd/%d%Z", dir);
    n = readlink(link, folder, sizeof(folder) - 1);

    (void) ngx_snprintf((u_char *) own, sizeof(own), "%V%Z",
                        &ngx_cycle->prefix);

    if (n == -1 || realpath(own, prefix) == NULL) {
        ngx_sluice_file_log_error(why, "readlink()", ngx_errno);
        return NGX_ERROR;
    }

    folder[n] = '\0';

    if (ngx_sluice_file_log_is_of_kernel(folder)) {
        (void) ngx_sprintf(why, "of devices only /dev/stdout and /dev/stderr "
                           "are taken%Z");
        return NGX_ERROR;
    }

    (void) ngx_sprintf((u_char *) logs, "%s/logs%Z", prefix);

    if (ngx_sluice_file_log_is_in(folder, prefix)
        && !ngx_sluice_file_log_is_in(folder, logs))
    {
        (void) ngx_sprintf(why, "in the prefix only files in logs/ are "
                           "taken%Z");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Its files are regular ones, too, and not all are in vain to write. */

static ngx_uint_t
ngx_sluice_file_log_is_of_kernel(const char *folder)
{
    ngx_uint_t  i;

    static const char  *const folders[] = { "/dev", "/proc", "/sys" };

    for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {

        if (ngx_sluice_file_log_is_in(folder, folders[i])) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_sluice_file_log_is_in(const char *path, const char *folder)
{
    size_t  length;

    length = ngx_strlen(folder);

    return ngx_strncmp(path, folder, length) == 0
           && (path[length] == '\0' || path[length] == '/');
}


/*
 * Whether nginx writes it: by its path, also where nothing stands there yet,
 * since nginx would open it anew; or else by what stands there.
 */

static ngx_uint_t
ngx_sluice_file_log_is_own(const char *path, const struct stat *st)
{
    ngx_uint_t        i;
    struct stat       own;
    ngx_list_part_t  *part;
    ngx_open_file_t  *file;

    for (part = (ngx_list_part_t *) &ngx_cycle->open_files.part; part;
         part = part->next)
    {
        file = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (path) {
                if (file[i].name.len
                    && ngx_strcmp(file[i].name.data, path) == 0)
                {
                    return 1;
                }

            } else if (fstat(file[i].fd, &own) == 0
                       && own.st_dev == st->st_dev
                       && own.st_ino == st->st_ino)
            {
                return 1;
            }
        }
    }

    return 0;
}


/* A device is not even opened: some do something then. */

static int
ngx_sluice_file_log_open_in(int dir, const char *name, u_char *why)
{
    int          fd;
    struct stat  st;

    /* before it is opened: the workers' user may not be allowed to */

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {

        if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
            (void) ngx_sprintf(why, S_ISLNK(st.st_mode)
                               ? "it is a link%Z"
                               : "it is neither a file nor a pipe%Z");
            return -1;
        }

        if (ngx_sluice_file_log_is_own(NULL, &st)) {
            (void) ngx_sprintf(why, "it is a log of the gateway itself%Z");
            return -1;
        }
    }

    /* of a pipe that nobody reads: an error, instead of a wait */

    fd = openat(dir, name, O_WRONLY|O_CREAT|O_APPEND|O_NOFOLLOW|O_NONBLOCK
                           |O_NOCTTY|O_CLOEXEC, NGX_SLUICE_FILE_LOG_MODE);

    if (fd == -1 && ngx_errno == NGX_EACCES
        && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
    {
        (void) ngx_sprintf(why, "the workers' user may not create files in "
                           "its folder: create it for that user%Z");
        return -1;
    }

    if (fd == -1) {
        ngx_sluice_file_log_error(why, "open()", ngx_errno);
        return -1;
    }

    if (ngx_sluice_file_log_check(fd, why) != NGX_OK) {
        (void) close(fd);
        return -1;
    }

    return fd;
}


/* A pipe is waited for: its thread has nothing else to do. */

static ngx_int_t
ngx_sluice_file_log_check(int fd, u_char *why)
{
    int          flags;
    struct stat  st;

    flags = fcntl(fd, F_GETFL);

    if (fstat(fd, &st) == -1
        || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == -1)
    {
        ngx_sluice_file_log_error(why, "fcntl()", ngx_errno);
        return NGX_ERROR;
    }

    if (S_ISFIFO(st.st_mode)) {
        return NGX_OK;
    }

    if (!S_ISREG(st.st_mode)) {
        (void) ngx_sprintf(why, "it is neither a file nor a pipe%Z");
        return NGX_ERROR;
    }

    if (st.st_nlink > 1) {
        (void) ngx_sprintf(why, "it has other links%Z");
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_sluice_file_log_error(u_char *why, const char *call, ngx_err_t err)
{
    u_char  *p, *last;

    last = why + NGX_SLUICE_FILE_LOG_WHY - 1;

    p = ngx_slprintf(why, last, "%s failed (%d: ", call, err);
    p = ngx_strerror(err, p, last - p);
    p = ngx_slprintf(p, last, ")");
    *p = '\0';
}
