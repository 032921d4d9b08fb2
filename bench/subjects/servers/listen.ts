/** Listens on a free loopback port and reports to the parent; ends with the parent. */
import type { TemplatedApp } from 'uWebSockets.js';
import { httpLibrary } from '../../../src/io/http/listen/library.ts';

export function listen(define: (app: TemplatedApp) => void): Promise<string> {
  const { uws } = httpLibrary();
  const app = uws.App();
  define(app);
  return new Promise((resolve, reject) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket === false) {
        reject(new Error('no free port'));
        return;
      }
      const url = `http://127.0.0.1:${uws.us_socket_local_port(socket)}`;
      tellParent(url);
      resolve(url);
    });
  });
}

export function tellParent(url: string): void {
  process.send?.({ url });
  process.on('disconnect', () => process.exit(0));
}
