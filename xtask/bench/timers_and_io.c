/* Ten thousand connections, each with an idle time-out that every message starts anew; each
 * message is answered by another timer, 1 to 16 ms after it came. What counts is the server's
 * processor time for a message, in which three timers are started and one is due.
 *
 *   timers_and_io                                    runs both sides and says what it took
 *   timers_and_io <cpu> <connections> <messages>     is the server */
#include "servers.h"
#include <arpa/inet.h>
#include <uv.h>

#define IDLE_MS 60000

typedef struct {
  uv_tcp_t tcp;
  uv_timer_t idle, delay;
  uv_write_t write;
  int handles;
  ssize_t got;
  char buffer[ROOM];
} connection_t;

static int connections, accepted;
static unsigned arrived;
static double messages, answered, begun;
static uv_tcp_t server;

static void on_close(uv_handle_t* handle) {
  connection_t* connection = handle->data;
  if (--connection->handles == 0)
    free(connection);
}

static void on_idle(uv_timer_t* timer) {
  (void) timer;
  MUST(!"no connection is idle for that long");
}

static void on_write(uv_write_t* request, int status) {
  (void) request;
  MUST(status == 0);
  if (++answered == messages)
    report(cpu_ns() - begun, 0, messages);
}

static void on_delay(uv_timer_t* timer) {
  connection_t* connection = timer->data;
  uv_buf_t answer = uv_buf_init(connection->buffer, connection->got);
  MUST(uv_timer_start(&connection->idle, on_idle, IDLE_MS, 0) == 0);
  MUST(uv_write(&connection->write, (uv_stream_t*) &connection->tcp, &answer, 1, on_write) == 0);
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  connection_t* connection = handle->data;
  (void) suggested;
  *buffer = uv_buf_init(connection->buffer, ROOM);
}

static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  connection_t* connection = stream->data;
  (void) buffer;
  if (count < 0) {
    uv_close((uv_handle_t*) &connection->idle, on_close);
    uv_close((uv_handle_t*) &connection->delay, on_close);
    uv_close((uv_handle_t*) stream, on_close);
    if (--accepted == 0)
      uv_close((uv_handle_t*) &server, NULL);
  } else if (count > 0) {
    connection->got = count;
    MUST(uv_timer_start(&connection->idle, on_idle, IDLE_MS, 0) == 0);
    MUST(uv_timer_start(&connection->delay, on_delay, 1 + arrived++ * 7 % 16, 0) == 0);
  }
}

static void on_connection(uv_stream_t* stream, int status) {
  connection_t* connection = calloc(1, sizeof *connection);
  MUST(status == 0 && connection != NULL);
  connection->handles = 3;
  connection->tcp.data = connection->idle.data = connection->delay.data = connection;
  MUST(uv_tcp_init(stream->loop, &connection->tcp) == 0);
  MUST(uv_timer_init(stream->loop, &connection->idle) == 0);
  MUST(uv_timer_init(stream->loop, &connection->delay) == 0);
  MUST(uv_accept(stream, (uv_stream_t*) &connection->tcp) == 0);
  MUST(uv_tcp_nodelay(&connection->tcp, 1) == 0);
  MUST(uv_timer_start(&connection->idle, on_idle, IDLE_MS, 0) == 0);
  MUST(uv_read_start((uv_stream_t*) &connection->tcp, on_alloc, on_read) == 0);
  if (++accepted == connections)
    begun = cpu_ns();
}

static int serve(char** argv) {
  struct sockaddr_in address;
  int size = sizeof address;
  uv_loop_t* loop = uv_default_loop();
  pin(atoi(argv[1]));
  raise_limit();
  connections = atoi(argv[2]);
  messages = atof(argv[3]);
  MUST(uv_ip4_addr("127.0.0.1", 0, &address) == 0);
  MUST(uv_tcp_init(loop, &server) == 0);
  MUST(uv_tcp_bind(&server, (struct sockaddr*) &address, 0) == 0);
  MUST(uv_listen((uv_stream_t*) &server, 1024, on_connection) == 0);
  MUST(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size) == 0);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
  MUST(uv_loop_close(loop) == 0);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 4)
    return serve(argv);
  load_t load = {"10000", "10000", "100000"};
  printf("10000 at once: %f ns/message\n", ns_per_message(argv[0], "timers_and_io", NULL, load));
  return 0;
}
