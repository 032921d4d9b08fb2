/** The OpenAPI description, generated from the route table. */

import { unknown } from '../../domain/schema.ts';
import type { Site } from '../../domain/site.ts';
import { describeApi } from '../http/openapi/document.ts';
import { type AnyRoute, defineRoute } from '../http/table/route.ts';
import { CachedBody } from '../web/cached-body.ts';

const documentShape = unknown({
  description: 'An OpenAPI document',
  examples: [{ openapi: '3.1.0', info: { title: 'demo gateway', version: '0.1.0' }, paths: {} }],
});

/** `routes`: the table without these routes; the description contains both. */
export function createDocsRoutes(routes: readonly AnyRoute[]): AnyRoute[] {
  let body: CachedBody | undefined;
  const own: AnyRoute[] = ['/docs/openapi.json', '/docs/swagger/openapi.json'].map((path) =>
    defineRoute({
      method: 'GET',
      path,
      summary: 'This description, OpenAPI 3.1',
      description:
        'Made from the table that routes the requests. The explorer reads it under `/docs/swagger/`.',
      docs: {
        reads: { 'If-None-Match': 'optional' },
        answers: {
          200: { description: 'The document', type: 'application/json', schema: documentShape },
          304: { description: 'The client has it' },
        },
        sends: ['ETag', 'Cache-Control'],
      },
      group: 'docs',
      auth: 'optional',
      handle({ site, header }) {
        body ??= describe(site);
        return body.reply(header);
      },
    }),
  );
  const describe = (site: Site): CachedBody => {
    const facts = { title: `${site.project} gateway`, version: site.version, baseUrl: site.baseUrl };
    const text = JSON.stringify(describeApi([...routes, ...own], facts));
    return new CachedBody(Buffer.from(text), 'application/json', [['Cache-Control', 'no-cache']]);
  };
  return own;
}
