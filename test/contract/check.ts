/** The form of a contract check: a sentence of the contract, what is seen, and the steps that show it. */
import type { Test } from 'tap';
import type { World } from './world.ts';

export interface Check {
  /** Number of a section in `sections.ts`. */
  readonly section: string;
  /** Word for word from that section, without the Markdown of tables and code; parts joined by ` … `. */
  readonly sentence: string;
  /** What the client sees, in a few words; with the section it names the test. */
  readonly shows: string;
  readonly run: (t: Test, world: World) => Promise<void>;
}

/** A part of a section that the service does not do, or does in another way. */
export interface Gap {
  readonly section: string;
  readonly sentence: string;
  readonly gap: string;
}

export interface Chapter {
  /** File of `chapters/`, without its ending. */
  readonly file: string;
  readonly checks: readonly Check[];
}
