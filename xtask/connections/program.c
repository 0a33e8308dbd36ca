/* Many connections at once, both ends on libuv, in two processes.
 *
 *   program server                       prints its port; ends when told to on its input
 *   program client <port> <connections>  connects, exchanges a message on each, waits, closes
 *
 * Each says on a line of its own how many bytes it has resident with and without connections,
 * and at its end how many descriptors it has left over. */
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#define MESSAGE 64
/* A source address has fewer ports than we want connections. */
#define PER_ADDRESS 5000

#define MUST(what)                                                            \
  do {                                                                        \
    if (!(what)) {                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);              \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

typedef struct {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  int index, got;
  char buffer[MESSAGE];
} connection_t;

static uv_loop_t loop;
static uv_tcp_t server;
static uv_pipe_t input;
static connection_t* all;
static int wanted, begun, answered, open_count, is_client;
static struct sockaddr_in peer;

static long resident(void) {
  long pages = 0, total = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  MUST(file != NULL && fscanf(file, "%ld %ld", &total, &pages) == 2);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static int descriptors(void) {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  MUST(dir != NULL);
  while (readdir(dir) != NULL)
    count++;
  closedir(dir);
  return count;
}

static void on_written(uv_write_t* request, int status) {
  (void) request;
  MUST(status == 0);
}

static void on_close(uv_handle_t* handle) {
  if (!is_client)
    free(handle->data);
  open_count--;
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  connection_t* connection = handle->data;
  (void) suggested;
  *buffer = uv_buf_init(connection->buffer + connection->got, MESSAGE - connection->got);
}

static void send_message(connection_t* connection) {
  uv_buf_t message = uv_buf_init(connection->buffer, MESSAGE);
  MUST(uv_write(&connection->write, (uv_stream_t*) &connection->tcp, &message, 1, on_written) == 0);
}

static void begin_next(void);

/* All connections stand and have been used: says what they cost, and waits to be told. */
static void on_all_answered(void) {
  printf("%ld\n", resident());
  fflush(stdout);
}

static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  connection_t* connection = stream->data;
  (void) buffer;
  if (count < 0) {
    MUST(count == UV_EOF && !is_client);
    uv_close((uv_handle_t*) stream, on_close);
    return;
  }
  connection->got += count;
  if (connection->got < MESSAGE)
    return;
  connection->got = 0;
  if (!is_client) {
    send_message(connection);
    return;
  }
  for (int i = 0; i < MESSAGE; i++)
    MUST(connection->buffer[i] == (char) (connection->index + i));
  if (++answered == wanted)
    on_all_answered();
  begin_next();
}

static void on_connect(uv_connect_t* request, int status) {
  connection_t* connection = request->data;
  MUST(status == 0);
  for (int i = 0; i < MESSAGE; i++)
    connection->buffer[i] = (char) (connection->index + i);
  MUST(uv_read_start((uv_stream_t*) &connection->tcp, on_alloc, on_read) == 0);
  send_message(connection);
}

static void begin_next(void) {
  struct sockaddr_in from;
  char name[32];
  if (begun == wanted)
    return;
  connection_t* connection = &all[begun];
  snprintf(name, sizeof name, "127.0.0.%d", 2 + begun / PER_ADDRESS);
  connection->index = begun++;
  connection->tcp.data = connection->connect.data = connection;
  MUST(uv_ip4_addr(name, 0, &from) == 0);
  MUST(uv_tcp_init(&loop, &connection->tcp) == 0);
  MUST(uv_tcp_bind(&connection->tcp, (struct sockaddr*) &from, 0) == 0);
  MUST(uv_tcp_connect(&connection->connect, &connection->tcp, (struct sockaddr*) &peer,
                      on_connect) == 0);
  open_count++;
}

static void on_connection(uv_stream_t* stream, int status) {
  connection_t* connection = calloc(1, sizeof *connection);
  MUST(status == 0);
  connection->tcp.data = connection;
  MUST(uv_tcp_init(&loop, &connection->tcp) == 0);
  MUST(uv_accept(stream, (uv_stream_t*) &connection->tcp) == 0);
  MUST(uv_read_start((uv_stream_t*) &connection->tcp, on_alloc, on_read) == 0);
  open_count++;
}

/* A line asks for the memory in use; the end of the input for the end. */
static void on_input(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  free(buffer->base);
  if (count > 0 && !is_client) {
    printf("%ld\n", resident());
    fflush(stdout);
  } else if (count < 0) {
    uv_close((uv_handle_t*) stream, NULL);
    if (!is_client)
      uv_close((uv_handle_t*) &server, NULL);
    for (int i = 0; is_client && i < begun; i++)
      uv_close((uv_handle_t*) &all[i].tcp, on_close);
  }
}

static void on_input_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void) handle, (void) suggested;
  *buffer = uv_buf_init(malloc(64), 64);
}

int main(int argc, char** argv) {
  struct rlimit limit;
  int size = sizeof peer, before = descriptors();
  MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  MUST(uv_loop_init(&loop) == 0);
  MUST(uv_pipe_init(&loop, &input, 0) == 0);
  MUST(uv_pipe_open(&input, 0) == 0);
  MUST(uv_read_start((uv_stream_t*) &input, on_input_alloc, on_input) == 0);
  is_client = argc == 4;
  MUST(uv_ip4_addr("127.0.0.1", is_client ? atoi(argv[2]) : 0, &peer) == 0);
  if (is_client) {
    /* The handles count as well, as they do in the server: libraries keep more or less in them. */
    printf("%ld\n", resident());
    wanted = atoi(argv[3]);
    all = calloc(wanted, sizeof *all);
    MUST(all != NULL);
    for (int i = 0; i < 64; i++)
      begin_next();
  } else {
    MUST(uv_tcp_init(&loop, &server) == 0);
    MUST(uv_tcp_bind(&server, (struct sockaddr*) &peer, 0) == 0);
    MUST(uv_listen((uv_stream_t*) &server, 1024, on_connection) == 0);
    MUST(uv_tcp_getsockname(&server, (struct sockaddr*) &peer, &size) == 0);
    printf("%d\n%ld\n", ntohs(peer.sin_port), resident());
    fflush(stdout);
  }
  MUST(uv_run(&loop, UV_RUN_DEFAULT) == 0);
  MUST(open_count == 0);
  MUST(uv_loop_close(&loop) == 0);
  /* A handle of standard input leaves that open when it is closed. */
  printf("%d\n", descriptors() - before);
  free(all);
  return 0;
}
