/**
 * Results by the callers' own numbers (`externalId`): the same number for the same request returns the first result
 * instead of doing it twice, and for another request it is refused.
 */
import { SandboxError } from './errors.ts';

interface Operation {
  /** The request, as text to compare. */
  readonly wanted: string;
  readonly id: string;
}

export class Operations {
  readonly #byNumber = new Map<string, Operation>();

  /** Id of what the number did already; undefined for a fresh one. */
  earlier(userId: string, externalId: string | null, wanted: readonly string[]): string | undefined {
    const found = externalId === null ? undefined : this.#byNumber.get(`${userId}:${externalId}`);
    if (found === undefined) return undefined;
    if (found.wanted !== wanted.join(' ')) throw new SandboxError('OperationConflict');
    return found.id;
  }

  note(userId: string, externalId: string | null, wanted: readonly string[], id: string): void {
    if (externalId !== null) this.#byNumber.set(`${userId}:${externalId}`, { wanted: wanted.join(' '), id });
  }
}
