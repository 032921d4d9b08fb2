/** Parameters that have changed their name: requests with the former name are still read. */

/** Former name → name of today. */
export type FormerNames = Readonly<Record<string, string>>;
type Fields = Readonly<Record<string, unknown>>;

export type Renamed =
  | { readonly ok: true; readonly fields: Fields }
  /** Both names are there and say different things. */
  | { readonly ok: false; readonly fault: string };

/** The fields under the names of today. A null under one name leaves the other; equal values count once. */
export function readFormerNames(names: FormerNames, fields: Fields): Renamed {
  let renamed: Record<string, unknown> | undefined;
  for (const [former, name] of Object.entries(names)) {
    if (!Object.hasOwn(fields, former)) continue;
    renamed ??= { ...fields };
    const sent = fields[former];
    const current = Object.hasOwn(fields, name) ? fields[name] : undefined;
    delete renamed[former];
    if (current === undefined || current === null) renamed[name] = sent;
    else if (sent !== null && String(sent) !== String(current))
      return { ok: false, fault: `${name} and ${former}, its former name, differ` };
  }
  return { ok: true, fields: renamed ?? fields };
}
