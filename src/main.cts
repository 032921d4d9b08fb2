/**
 * The entry. Process-wide sizes must stand before the first ES module is loaded: loading one already uses libuv's
 * pool, and uWebSockets.js reads its header limit when it is imported. The program is required, not imported: its
 * files are then read one after another on this thread, which takes less time than libuv's pool (docs/decisions/0073).
 */
process.env['UV_THREADPOOL_SIZE'] ??= '16';
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';
const { run } = require('./gatehouse.js') as typeof import('./gatehouse.ts');
void run(process.argv.slice(2));
