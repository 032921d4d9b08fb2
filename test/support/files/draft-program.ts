/** v2 uploads against the real program: a draft to upload to. */

/** Its file id. Throws when none was given. */
export async function createDraft(url: string, cookie: string): Promise<string> {
  const path = `${url}/auth/v2/file/create_draft?fileName=a.bin`;
  const answer = await fetch(path, { method: 'POST', headers: { Cookie: cookie } });
  const { result } = (await answer.json()) as { result?: string };
  if (result === undefined) throw new Error(`create_draft: ${answer.status}`);
  return result.slice(0, result.indexOf(':'));
}
