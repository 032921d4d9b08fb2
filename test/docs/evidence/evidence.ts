/** Subjects with the tests that show them: `file: part of the title`. */
export type Evidence = Readonly<Record<string, readonly string[]>>;
