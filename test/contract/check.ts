/** Evidence for a sentence of the contract: a check of the client, or the reason for having none. */
import type { Test } from 'tap';
import type { World } from './world.ts';

/** Quoted from one section of docs/specification.md, without Markdown; parts are joined by ` … `. */
export interface Citation {
  readonly section: string;
  readonly sentence: string;
}

export interface Check extends Citation {
  /** The observation of the client, in a few words; section and observation are the title of the test. */
  readonly shows: string;
  /** Sentences of other sections that it shows too. */
  readonly also?: readonly (readonly [section: string, sentence: string])[];
  /** Waits long and shares no state with other checks: runs in parallel with them. */
  readonly apart?: true;
  readonly run: (t: Test, world: World) => Promise<void>;
}

/** Checks of one section, by what they show. */
export function checksOf(
  section: string,
  checks: Readonly<Record<string, Omit<Check, 'section' | 'shows'>>>,
): readonly Check[] {
  return Object.entries(checks).map(([shows, check]) => ({ section, shows, ...check }));
}

/** Every sentence that a check shows. */
export function citationsOf({ section, sentence, also = [] }: Check): Citation[] {
  return [{ section, sentence }, ...also.map(([section, sentence]) => ({ section, sentence }))];
}

/** A part of a section that the service does not implement, or implements differently. */
export interface Gap extends Citation {
  readonly gap: string;
}

/** A sentence that no client can observe, or only after hours: shown by a test of another kind. */
export interface OtherTest extends Citation {
  readonly shows: string;
  /** File, and a part of the test's title. */
  readonly test: readonly [file: string, name: string];
}

export interface Chapter {
  /** File in `chapters/`, without extension. */
  readonly file: string;
  /** The test file that runs it, beside `chapters/`, without extensions. */
  readonly test: string;
  readonly checks: readonly Check[];
}
