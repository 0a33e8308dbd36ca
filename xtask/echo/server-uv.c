/* An echo server on libuv, whichever it finds when it starts.
 *
 *   server-uv <cpu> <connections> <messages> [own]
 *
 * Prints its port, and when it has echoed all messages, what one of them cost. It handles its
 * memory as the server of libuv's guide does: a buffer of the suggested size is allocated for
 * every read, and a request for every write, and both are freed in the write's callback. With
 * `own`, each connection has a small buffer and a request of its own instead. */
#include "common.h"
#include <arpa/inet.h>
#include <uv.h>

typedef struct {
  uv_tcp_t tcp;
  uv_write_t write;
  char buffer[ROOM];
} connection_t;

typedef struct {
  uv_write_t write;
  uv_buf_t buffer;
} answer_t;

static int connections, accepted, own;
static double messages, bytes, start, first_turn;
static uv_tcp_t server;

static double turns(void) {
  uv_metrics_t metrics;
  MUST(uv_metrics_info(uv_default_loop(), &metrics) == 0);
  return metrics.loop_count;
}

static void on_close(uv_handle_t* handle) {
  free(handle->data);
}

static void on_write(uv_write_t* request, int status) {
  MUST(status == 0);
  if (!own) {
    free(((answer_t*) request)->buffer.base);
    free(request);
  }
  if (bytes == messages * MESSAGE) {
    report(cpu_ns() - start, turns() - first_turn, messages);
    bytes = 0;
  }
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  connection_t* connection = handle->data;
  *buffer = own ? uv_buf_init(connection->buffer, ROOM) : uv_buf_init(malloc(suggested), suggested);
}

static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  connection_t* connection = stream->data;
  if (count <= 0 && !own)
    free(buffer->base);
  if (count < 0) {
    uv_close((uv_handle_t*) stream, on_close);
    if (--accepted == 0)
      uv_close((uv_handle_t*) &server, NULL);
    return;
  }
  if (count == 0)
    return;
  bytes += count;
  if (own) {
    uv_buf_t answer = uv_buf_init(buffer->base, count);
    MUST(uv_write(&connection->write, stream, &answer, 1, on_write) == 0);
  } else {
    answer_t* answer = malloc(sizeof *answer);
    answer->buffer = uv_buf_init(buffer->base, count);
    MUST(uv_write(&answer->write, stream, &answer->buffer, 1, on_write) == 0);
  }
}

static void on_connection(uv_stream_t* stream, int status) {
  connection_t* connection = calloc(1, sizeof *connection);
  MUST(status == 0);
  connection->tcp.data = connection;
  MUST(uv_tcp_init(stream->loop, &connection->tcp) == 0);
  MUST(uv_accept(stream, (uv_stream_t*) &connection->tcp) == 0);
  MUST(uv_tcp_nodelay(&connection->tcp, 1) == 0);
  MUST(uv_read_start((uv_stream_t*) &connection->tcp, on_alloc, on_read) == 0);
  if (++accepted == connections) {
    start = cpu_ns();
    first_turn = turns();
  }
}

int main(int argc, char** argv) {
  struct sockaddr_in address;
  int size = sizeof address;
  MUST(argc == 4 || argc == 5);
  own = argc == 5;
  pin(atoi(argv[1]));
  raise_limit();
  connections = atoi(argv[2]);
  messages = atof(argv[3]);
  MUST(uv_ip4_addr("127.0.0.1", 0, &address) == 0);
  MUST(uv_tcp_init(uv_default_loop(), &server) == 0);
  MUST(uv_tcp_bind(&server, (struct sockaddr*) &address, 0) == 0);
  MUST(uv_listen((uv_stream_t*) &server, 1024, on_connection) == 0);
  MUST(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size) == 0);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  MUST(uv_run(uv_default_loop(), UV_RUN_DEFAULT) == 0);
  MUST(uv_loop_close(uv_default_loop()) == 0);
  return 0;
}
