/** WebSockets to the echo of the sandbox, with a client of the package `ws`. */
import { WebSocket } from 'ws';

export interface EchoClient {
  /** Code of the close frame; 1006 without one. */
  readonly ended: Promise<number>;
  /** The answer to a text. Rejects if the socket closes before it. */
  echoed(text: string): Promise<string>;
  send(text: string): void;
  close(): void;
}

/** Opens one at a gateway. Rejects where the answer is no upgrade. */
export async function openEcho(url: string, headers: Record<string, string>): Promise<EchoClient> {
  const socket = new WebSocket(`${url}/core/v1/echo`, [], { headers, perMessageDeflate: false });
  await new Promise<void>((resolve, reject) => socket.on('open', resolve).on('error', reject));
  return {
    ended: new Promise((resolve) => socket.on('close', resolve)),
    echoed(text) {
      const answer = new Promise<string>((resolve, reject) =>
        socket
          .once('message', (bytes: Buffer) => resolve(bytes.toString()))
          .once('close', (code: number) => reject(new Error(`closed with ${code}`))),
      );
      socket.send(text);
      return answer;
    },
    send: (text) => socket.send(text),
    close: () => socket.close(),
  };
}
