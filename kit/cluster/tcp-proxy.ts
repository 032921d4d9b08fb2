/** A TCP proxy on a free loopback port whose connections its caller cuts, holds, or relieves of one question or answer. */
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';

interface Loss {
  readonly part: 'question' | 'answer';
  /** Bytes of the message from the client that is meant. */
  readonly match: string;
  readonly done: () => void;
}

export interface TcpProxy {
  readonly port: number;
  /** Ends every connection, and refuses new ones until `heal`. */
  cut(): void;
  /** Passes nothing on until `heal`, and ends no connection. */
  hold(): void;
  heal(): void;
  /** Ends the connection of the next message with these bytes before it, or its answer, is passed on. */
  loseNext(part: Loss['part'], match: string): Promise<void>;
  /** Ends every connection and the listener. */
  close(): void;
}

export async function startTcpProxy(target: NetConnectOpts): Promise<TcpProxy> {
  const pairs = new Set<readonly [client: Socket, server: Socket]>();
  let state: 'open' | 'cut' | 'held' = 'open';
  let loss: Loss | undefined;
  const server: Server = createServer((client) => {
    if (state === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(target);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.setNoDelay(true).on('error', end).on('close', end);
    if (state === 'held') hold(pair);
    let answerLost: (() => void) | undefined;
    client.on('data', (bytes) => {
      const meant = loss !== undefined && bytes.includes(loss.match) ? loss : undefined;
      if (meant !== undefined) loss = undefined;
      if (meant?.part === 'question') {
        end();
        meant.done();
        return;
      }
      answerLost = meant?.done ?? answerLost;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (answerLost === undefined) {
        client.write(bytes);
        return;
      }
      end();
      answerLost();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    cut() {
      state = 'cut';
      cut();
    },
    hold() {
      state = 'held';
      for (const pair of pairs) hold(pair);
    },
    heal() {
      state = 'open';
      for (const pair of pairs) for (const socket of pair) socket.resume();
    },
    loseNext: (part, match) =>
      new Promise((done) => {
        loss = { part, match, done };
      }),
    close() {
      state = 'cut';
      cut();
      server.close();
    },
  };
}

function hold(pair: readonly Socket[]): void {
  for (const socket of pair) socket.pause();
}
