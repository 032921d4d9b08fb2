/** Types of the package `ws`, as far as it is used: it has none of its own. */
declare module 'ws' {
  import type { EventEmitter } from 'node:events';
  import type { ClientRequest, IncomingMessage } from 'node:http';
  import type { Duplex } from 'node:stream';

  interface SocketOptions {
    readonly maxPayload?: number;
    readonly perMessageDeflate?: boolean;
    readonly closeTimeout?: number;
  }
  interface ClientOptions extends SocketOptions {
    readonly headers?: Readonly<Record<string, string>>;
    readonly createConnection?: () => Duplex;
    /** Called instead of `request.end()`. */
    readonly finishRequest?: (request: ClientRequest) => void;
  }

  export class WebSocket extends EventEmitter {
    /** Bytes of messages that the socket has not taken yet. */
    readonly bufferedAmount: number;
    readonly protocol: string;
    readonly readyState: 0 | 1 | 2 | 3;
    constructor(address: string, protocols: readonly string[], options: ClientOptions);
    send(data: Uint8Array | string, options?: { readonly binary: boolean }): void;
    ping(): void;
    pause(): void;
    resume(): void;
    close(code?: number, reason?: Uint8Array | string): void;
    terminate(): void;
    on(event: 'open' | 'ping' | 'pong', listener: () => void): this;
    on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): this;
    on(event: 'close', listener: (code: number, reason: Buffer) => void): this;
    on(event: 'error', listener: (error: Error) => void): this;
    on(event: 'upgrade', listener: (response: IncomingMessage) => void): this;
    on(
      event: 'unexpected-response',
      listener: (request: ClientRequest, response: IncomingMessage) => void,
    ): this;
  }

  export class WebSocketServer extends EventEmitter {
    readonly clients: ReadonlySet<WebSocket>;
    constructor(options: SocketOptions & { readonly noServer: true });
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      opened: (socket: WebSocket) => void,
    ): void;
  }
}
