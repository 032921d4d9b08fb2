/**
 * The entry. Process-wide sizes must stand before the first ES module is loaded: loading one already uses libuv's
 * pool, and uWebSockets.js reads its header limit when it is imported.
 */
process.env['UV_THREADPOOL_SIZE'] ??= '16';
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';
void import('./gatehouse.ts').then(({ run }) => run(process.argv.slice(2)));
