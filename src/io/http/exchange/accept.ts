/** Fields by which a client says what it takes: `Accept` and `Accept-Encoding`. */

/** Is this media type or coding named, without a weight of 0 (RFC 9110 12.4.2)? A wildcard names nothing. */
export function accepts(field: string, name: string): boolean {
  return field.split(',').some((part) => {
    const [range = '', ...parameters] = part.trim().toLowerCase().split(';');
    return (
      range.trim() === name && !parameters.some((parameter) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/.test(parameter))
    );
  });
}
