/** Rows put into a journal without a runtime. */
import { type Journal, type Operation, ofNoActor } from '../../../src/actors/runtime/journal/port.ts';

/** Resolves when the rows are on disk. */
export function commitRows(journal: Journal, operations: readonly Operation[]): Promise<void> {
  return new Promise((resolve, reject) => {
    journal.commit([ofNoActor(operations)], (error) => (error === undefined ? resolve() : reject(error)));
  });
}
