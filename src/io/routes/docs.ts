/** The description of the API, made from the route table that it stands in. */
import type { Site } from '../../domain/site.ts';
import { describeApi } from '../http/openapi.ts';
import { type AnyRoute, defineRoute } from '../http/route.ts';
import { CachedBody } from '../web/cached-body.ts';

/** `routes`: the table without this route; the description names both. */
export function createDocsRoutes(routes: readonly AnyRoute[]): AnyRoute[] {
  let body: CachedBody | undefined;
  const own: AnyRoute[] = ['/docs/openapi.json', '/docs/swagger/openapi.json'].map((path) =>
    defineRoute({
      method: 'GET',
      path,
      summary: 'This description, OpenAPI 3.1',
      group: 'docs',
      auth: 'optional',
      limits: [],
      errors: [],
      handle({ site, header }) {
        body ??= describe(site);
        return body.reply(header);
      },
    }),
  );
  const describe = (site: Site): CachedBody => {
    const facts = { title: `${site.project} gateway`, version: site.version, baseUrl: site.baseUrl };
    const text = JSON.stringify(describeApi([...routes, ...own], facts));
    const made = new CachedBody(Buffer.from(text), 'application/json', [['Cache-Control', 'no-cache']]);
    // The first who asks has it as it is; without its compressed forms everybody does.
    made.compress().catch(() => undefined);
    return made;
  };
  return own;
}
