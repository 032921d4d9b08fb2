/** The guard on leaving a page with input that is not saved. One page is shown at a time, so there is one guard. */
import { useEffect } from '../vendor/preact.js';

let shown;

/** Guards while `words`, which say what would be lost, are given: undefined lets the person go. */
export function useGuard(words) {
  useEffect(() => {
    if (words === undefined) return undefined;
    shown = words;
    // The browser asks in words of its own.
    const ask = (event) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => {
      shown = undefined;
      removeEventListener('beforeunload', ask);
    };
  }, [words]);
}

/** The words for what a move to another page would lose; undefined: nothing. */
export const lostByLeaving = () => shown;
