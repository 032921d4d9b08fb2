/**
 * The worker tasks, with plain data as input and output. A task is one entry of `WorkerTasks`, one entry of `TASKS` and one
 * function in a file of its own.
 */
import {
  type CopyRangeTask,
  copyRange,
  hashRange,
  type SystemFault,
  type WriteBufferResult,
  type WriteBufferTask,
  writeBuffer,
} from './crc32.ts';
import { checkEd25519Key, verifyEd25519 } from './ed25519.ts';
import {
  type AuthenticationResult,
  type AuthenticationTask,
  type RegistrationResult,
  type RegistrationTask,
  verifyAuthentication,
  verifyRegistration,
} from './fido2.ts';
import type { FileRangeTask } from './file-range.ts';
import {
  type MakePartResult,
  type MakePartTask,
  makePart,
  type PublishPartResult,
  type PublishPartTask,
  publishPart,
} from './part-files.ts';
import { type Sha256Task, sha256Range } from './sha256.ts';

export interface WorkerTasks {
  /** Ed25519 verification with checked keys. All three are raw bytes; the result is false for wrong lengths. */
  verifyEd25519: {
    input: { publicKey: Uint8Array; message: Uint8Array; signature: Uint8Array };
    output: boolean;
  };
  /** True for a key that may be enrolled: on the curve, canonical, not of small order, free of torsion. */
  checkEd25519Key: { input: { publicKey: Uint8Array }; output: boolean };
  /** A browser's answer to register_options, and whether its key may be enrolled. */
  verifyRegistration: { input: RegistrationTask; output: RegistrationResult };
  /** A browser's answer to login_options with one of the owner's credentials. */
  verifyAuthentication: { input: AuthenticationTask; output: AuthenticationResult };
  /** Writes file bytes and returns their CRC-32. The buffer is shared, not copied (docs/optimizations.md). */
  writeBuffer: { input: WriteBufferTask; output: WriteBufferResult };
  /** CRC-32 of a range of a file; undefined when the file is shorter. */
  hashRange: { input: FileRangeTask; output: number | undefined };
  /** Copies a range into another file; as `hashRange`, of the bytes that were copied. */
  copyRange: { input: CopyRangeTask; output: number | undefined | SystemFault };
  /** SHA-256 of the same, base64url. */
  sha256Range: { input: Sha256Task; output: string | undefined };
  /** Creates an empty part; its open descriptor. */
  makePart: { input: MakePartTask; output: MakePartResult };
  /** Turns a part into a file, durably. */
  publishPart: { input: PublishPartTask; output: PublishPartResult };
}

export type TaskName = keyof WorkerTasks;
export type TaskInput<N extends TaskName> = WorkerTasks[N]['input'];
export type TaskOutput<N extends TaskName> = WorkerTasks[N]['output'];

/** Properties of a task that decide what may be done when its answer does not come. */
interface TaskNature {
  /** Has no side effect: when its thread dies, it may run again. */
  readonly isPure: boolean;
  /** Uses a descriptor or a buffer, which stay taken until its thread has answered or ended. */
  readonly holdsFile: boolean;
  /** The caller waits so long, and a second more for each MiB of `bytes`. */
  readonly limitSeconds: number;
}

const SIGNATURE: TaskNature = { isPure: true, holdsFile: false, limitSeconds: 5 };
const HASH: TaskNature = { isPure: true, holdsFile: true, limitSeconds: 60 };
const WRITE: TaskNature = { isPure: false, holdsFile: true, limitSeconds: 60 };

/** The way in which one task is sent and run. `Packed` crosses the thread boundary. */
export interface TaskDefinition<N extends TaskName, Packed> extends TaskNature {
  /** Bytes that it reads again or syncs. */
  readonly bytes?: (input: TaskInput<N>) => number;
  /** On the main thread: a copy of the input, so the caller may reuse its bytes. */
  pack(input: TaskInput<N>): Packed;
  /** Runs on the worker thread. May throw: the caller then gets `InternalError`. */
  run(packed: Packed): TaskOutput<N> | Promise<TaskOutput<N>>;
}

/** One task on its way to a thread. */
export interface PackedTask extends TaskNature {
  readonly name: TaskName;
  readonly packed: unknown;
}

const MEBIBYTE = 1024 * 1024;

/**
 * Short byte arrays are sent as one-byte strings: cloning a small Buffer copies the 8 KB pool block that it is part of
 * (docs/optimizations.md).
 */
const TASKS: { readonly [N in TaskName]: TaskDefinition<N, unknown> } = {
  verifyEd25519: define<'verifyEd25519', readonly [string, string, string]>({
    ...SIGNATURE,
    pack: ({ publicKey, message, signature }) => [toText(publicKey), toText(message), toText(signature)],
    run: ([publicKey, message, signature]) =>
      verifyEd25519({
        publicKey: fromText(publicKey),
        message: fromText(message),
        signature: fromText(signature),
      }),
  }),
  checkEd25519Key: define<'checkEd25519Key', string>({
    ...SIGNATURE,
    pack: ({ publicKey }) => toText(publicKey),
    run: (publicKey) => checkEd25519Key({ publicKey: fromText(publicKey) }),
  }),
  verifyRegistration: define<'verifyRegistration', RegistrationTask>({
    ...SIGNATURE,
    pack: (task) => task,
    run: verifyRegistration,
  }),
  verifyAuthentication: define<
    'verifyAuthentication',
    readonly [Omit<AuthenticationTask, 'cosePublicKey'>, string]
  >({
    ...SIGNATURE,
    pack: ({ cosePublicKey, ...rest }) => [rest, toText(cosePublicKey)],
    run: ([rest, cosePublicKey]) => verifyAuthentication({ ...rest, cosePublicKey: fromText(cosePublicKey) }),
  }),
  writeBuffer: define<'writeBuffer', WriteBufferTask>({ ...WRITE, pack: (task) => task, run: writeBuffer }),
  hashRange: define<'hashRange', FileRangeTask>({
    ...HASH,
    bytes: ({ length }) => length,
    pack: (task) => task,
    run: hashRange,
  }),
  copyRange: define<'copyRange', CopyRangeTask>({
    ...WRITE,
    bytes: ({ length }) => length,
    pack: (task) => task,
    run: copyRange,
  }),
  sha256Range: define<'sha256Range', Sha256Task>({
    ...HASH,
    bytes: ({ length, more = [] }) => more.reduce((sum, range) => sum + range.length, length),
    pack: (task) => task,
    run: sha256Range,
  }),
  makePart: define<'makePart', MakePartTask>({
    ...WRITE,
    pack: (task) => task,
    run: makePart,
  }),
  publishPart: define<'publishPart', PublishPartTask>({
    ...WRITE,
    bytes: ({ sizeBytes }) => sizeBytes,
    pack: (task) => task,
    run: publishPart,
  }),
};

export function packTask<N extends TaskName>(name: N, input: TaskInput<N>): PackedTask {
  const { isPure, holdsFile, limitSeconds: least, bytes, pack } = TASKS[name];
  const limitSeconds = bytes === undefined ? least : least + Math.ceil(bytes(input) / MEBIBYTE);
  return { name, isPure, holdsFile, limitSeconds, packed: pack(input) };
}

/** Runs on a worker thread. May throw or reject. */
export function runTask({ name, packed }: Pick<PackedTask, 'name' | 'packed'>): unknown {
  return TASKS[name].run(packed);
}

/** Checks the types of one definition; the table does not know `Packed`. */
function define<N extends TaskName, Packed>(
  definition: TaskDefinition<N, Packed>,
): TaskDefinition<N, unknown> {
  return { ...definition, run: (packed) => definition.run(packed as Packed) };
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function fromText(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}
