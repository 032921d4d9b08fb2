/** The list of worker tasks: plain data in, plain data out. A task is one row of `WorkerTasks` and one function. */

export interface WorkerTasks {
  /** Guarded Ed25519 verification (auth.md A1). All three are raw bytes; wrong lengths are simply false. */
  verifyEd25519: {
    input: { publicKey: Uint8Array; message: Uint8Array; signature: Uint8Array };
    output: boolean;
  };
  /** Is this a key that may be enrolled: on the curve, canonical, not small-order, torsion-free. */
  checkEd25519Key: { input: { publicKey: Uint8Array }; output: boolean };
}

export type TaskName = keyof WorkerTasks;
export type TaskInput<N extends TaskName> = WorkerTasks[N]['input'];
export type TaskOutput<N extends TaskName> = WorkerTasks[N]['output'];
