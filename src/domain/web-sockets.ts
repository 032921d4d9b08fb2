/** WebSockets (RFC 6455): the size of messages, codes of close frames, and how sockets end. */

/** Bytes of one message, in either direction. */
export const MESSAGE_MAX_BYTES = 1024 * 1024;

/** Status codes of a close frame (RFC 6455 7.4 and the registry of IANA). */
export const CLOSE = {
  goingAway: 1001,
  /** The two that no frame carries: a frame without a code, and a connection that broke. */
  none: 1005,
  broken: 1006,
  policy: 1008,
  tooBig: 1009,
  restart: 1012,
  tryLater: 1013,
  badGateway: 1014,
} as const;

/**
 * - `client`, `module`: that side closed it. `lost`: the client's connection broke. `cut`: the module's did, or its frames
 *   were faulty. `slow`: the module took too little. `large`: a message of the client had more than 1 MiB.
 * - `session`, `idle`, `drain`: the gateway ended it. `unavailable`: a message came while the node had no lease.
 */
export const SOCKET_ENDS = [
  'client',
  'module',
  'lost',
  'cut',
  'slow',
  'large',
  'session',
  'idle',
  'drain',
  'unavailable',
] as const;
export type SocketEnd = (typeof SOCKET_ENDS)[number];
