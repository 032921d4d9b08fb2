/**
 * Loaded into a gateway with --require: its start waits where it holds the data folder, when its ports are known and
 * nothing else is, until SIGUSR2.
 */
const { Server } = require('node:net') as typeof import('node:net');

type Listen = (this: object, ...args: unknown[]) => unknown;
const { listen } = Server.prototype as unknown as { listen: Listen };

Object.assign(Server.prototype, {
  listen(this: object, ...args: unknown[]) {
    const [path] = args;
    if (typeof path !== 'string' || !path.startsWith('\0gatehouse-')) return listen.apply(this, args);
    const stayAlive = setInterval(() => undefined, 1_000);
    process.once('SIGUSR2', () => {
      clearInterval(stayAlive);
      listen.apply(this, args);
    });
    process.stderr.write('held\n');
    return this;
  },
});
