/**
 * Several processes of one subject. Two of one build differ by some percent for as long as they run (where memory lies,
 * what was compiled when), so that a ratio of one of each would be theirs and not the program's.
 */
import type { Subject } from './measure.ts';

/** All of them; the subject itself is the first. */
export function instancesOf(subject: Subject): readonly Subject[] {
  return [subject, ...(subject.others ?? [])];
}

/** Whose round it is: each has the machine for as many rounds as there are places in the order of subjects. */
export function instanceAt(subject: Subject, round: number, places: number): Subject {
  const all = instancesOf(subject);
  return all[Math.floor(round / places) % all.length] ?? subject;
}

/** One subject of each place, with those of the other casts as its further instances. */
export function mergeCasts([first = [], ...more]: readonly (readonly Subject[])[]): Subject[] {
  return first.map((subject, place) => ({ ...subject, others: more.flatMap((cast) => cast[place] ?? []) }));
}
