/** Runs the handshake over a link, with a deadline. The link is closed when it fails. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import {
  AcceptorHandshake,
  DialerHandshake,
  HandshakeRefused,
  type Identity,
  type RefusalReason,
} from './handshake.ts';
import type { CloseReason, Link } from './link.ts';

/** Time from the connection to the last message. */
export const HANDSHAKE_MS = 2_000;
const BINDING_BYTES = 32;

export interface HandshakeDeps {
  /** Asked at each handshake: the incarnation changes. */
  readonly self: () => Identity;
  readonly keys: readonly Buffer[];
  readonly randomBytes: (length: number) => Uint8Array;
  readonly schedule: Schedule;
}

/** The reason why there is no link: the handshake was refused, or the connection was lost before its end. */
export type Failure =
  | { readonly refused: RefusalReason; readonly byPeer: boolean }
  | { readonly lost: CloseReason };

/** Calls one of both, once. `admit` may refuse a peer that has the secret. */
export function accept(
  link: Link,
  socket: Socket,
  deps: HandshakeDeps,
  admit: (peer: Identity) => RefusalReason | undefined,
  onOpen: (peer: Identity) => void,
  onFailed: (failure: Failure) => void,
): void {
  const handshake = new AcceptorHandshake(optionsOf(socket, deps));
  const done = settleOnce(link, deps.schedule, onFailed);
  link.onText((frame) => {
    attempt(
      link,
      done,
      (reason) => handshake.refusal(reason),
      () => {
        const { peer, message } = handshake.answer(frame);
        const refused = admit(peer);
        if (refused !== undefined) throw new HandshakeRefused(refused);
        link.writeText(message);
        done.open(() => onOpen(peer));
      },
    );
  });
  link.writeText(handshake.greeting());
}

/** `node`: the one that is expected at the other end. */
export function dial(
  link: Link,
  socket: Socket,
  deps: HandshakeDeps,
  node: number,
  onOpen: (peer: Identity) => void,
  onFailed: (failure: Failure) => void,
): void {
  const handshake = new DialerHandshake(optionsOf(socket, deps), node);
  const done = settleOnce(link, deps.schedule, onFailed);
  let isGreeted = false;
  link.onText((frame) => {
    attempt(link, done, undefined, () => {
      if (!isGreeted) {
        isGreeted = true;
        link.writeText(handshake.hello(frame));
        return;
      }
      const peer = handshake.finish(frame);
      done.open(() => onOpen(peer));
    });
  });
}

/** The same at both ends of one TLS session, and known to no one else (RFC 9266 2). */
function bindingOf(socket: Socket): string {
  if (!(socket instanceof TLSSocket)) return '';
  return socket
    .exportKeyingMaterial(BINDING_BYTES, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
    .toString('base64url');
}

function optionsOf(socket: Socket, { self, keys, randomBytes }: HandshakeDeps) {
  return { self: self(), keys, randomBytes, binding: bindingOf(socket) };
}

interface Done {
  open(then: () => void): void;
  fail(failure: Failure): void;
}

function settleOnce(link: Link, schedule: Schedule, onFailed: (failure: Failure) => void): Done {
  let isDone = false;
  const cancel = schedule.timer(HANDSHAKE_MS, () => link.close('late'));
  const finish = (then: () => void) => {
    if (isDone) return;
    isDone = true;
    cancel();
    then();
  };
  link.onClose((reason) => finish(() => onFailed({ lost: reason })));
  return { open: finish, fail: (failure) => finish(() => onFailed(failure)) };
}

function attempt(
  link: Link,
  done: Done,
  refusal: ((reason: RefusalReason) => string) | undefined,
  step: () => void,
): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof HandshakeRefused)) throw error;
    const { reason, byPeer } = error;
    if (refusal !== undefined) link.writeText(refusal(reason));
    done.fail({ refused: reason, byPeer });
    link.close('refused');
  }
}
