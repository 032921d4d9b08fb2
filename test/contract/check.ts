/** The forms in which a sentence of the contract is accounted for: a check of the client, or why there is none. */
import type { Test } from 'tap';
import type { World } from './world.ts';

/** Word for word from one section of docs/specification.md, without its Markdown; parts are joined by ` … `. */
export interface Citation {
  readonly section: string;
  readonly sentence: string;
}

export interface Check extends Citation {
  /** What the client sees, in a few words; with the section it names the test. */
  readonly shows: string;
  /** Waits long and shares nothing with the other checks: it runs beside them. */
  readonly apart?: true;
  readonly run: (t: Test, world: World) => Promise<void>;
}

/** A part of a section that the service does not do, or does in another way. */
export interface Gap extends Citation {
  readonly gap: string;
}

/** Nothing that a client can see from outside, or only after hours: a test of another kind shows it. */
export interface OtherTest extends Citation {
  readonly shows: string;
  /** File and a part of the name of the test. */
  readonly test: readonly [file: string, name: string];
}

export interface Chapter {
  /** File of `chapters/`, without its ending. */
  readonly file: string;
  /** The test that runs it: a file beside `chapters/`, without its endings. */
  readonly test: string;
  readonly checks: readonly Check[];
}
