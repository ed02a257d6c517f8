import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { basePathOf, type Settings } from '../../config/settings.ts';
import { notFound } from '../api_error.ts';
import type { HttpApp } from '../route_context.ts';
import type { ConsoleContents } from './bundle_console.ts';
import {
  acceptedEncoding,
  type CompressedFile,
  createCompressedFile,
  createPageShell,
  type PageShell,
  readConsoleFiles,
} from './console_files.ts';

/** The paths of pages, which the router in the browser reads (src/console/router/routes.ts). */
const pagePaths = ['/', '/exports/*', '/query', '/keys', '/audit', '/source', '/webhooks'];

const aYear = 31_536_000;

/** Whether a browser asks for a page. Programs get JSON of the paths of the API, and wherever they do not name HTML. */
const asksForPage = (request: FastifyRequest): boolean =>
  request.method === 'GET' &&
  (request.headers.accept?.includes('text/html') ?? false) &&
  !pathOf(request).startsWith('/api/');

/**
 * The document of the pages and the files that it loads, without authentication: they hold no data. A browser that asks for an
 * unknown page gets one that says so.
 */
export function consoleRoutes(app: HttpApp, settings: Pick<Settings, 'EXPORTD_BASE_URL'>): void {
  const basePath = basePathOf(settings);
  // With the first page: a build reads it from files, and a clone bundles it in 0.2 s, which most servers of its tests need not.
  const site = once(async () => {
    const files = await readConsoleFiles();
    const other = createDocument(files, [], basePath);
    const pages = files.pages.map(({ path, modules }) => ({
      path: new RegExp(path),
      document: createDocument(files, modules, basePath),
    }));
    /** The document of a path; one of no page shows that there is none. */
    return (path: string) => pages.find((page) => page.path.test(path))?.document ?? other;
  });
  const sendPage = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const documentOf = await site();
    const { shell, page, etag } = documentOf(pathOf(request));
    void reply.headers({
      'content-security-policy': shell.contentSecurityPolicy,
      'cache-control': 'no-cache',
      etag,
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': 'camera=(), geolocation=(), microphone=()',
    });
    if (reply.statusCode === 200 && request.headers['if-none-match']?.includes(etag))
      return reply.code(304).send();
    return sendCompressed(request, reply, 'text/html; charset=utf-8', page);
  };
  for (const path of pagePaths) app.get(path, { schema: { hide: true } }, sendPage);
  app.setNotFoundHandler((request, reply) => {
    if (!asksForPage(request)) throw notFound();
    return sendPage(request, reply.code(404));
  });

  app.get('/console/assets/:name', { schema: { hide: true } }, async (request, reply) => {
    const { files } = await readConsoleFiles();
    const file = files.get((request.params as { readonly name: string }).name);
    if (!file) throw notFound();
    void reply.headers({
      'cache-control': `public, max-age=${aYear}, immutable`,
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    });
    return sendCompressed(request, reply, file.type, file);
  });
}

interface ConsoleDocument {
  readonly shell: PageShell;
  readonly page: CompressedFile;
  readonly etag: string;
}

function createDocument(
  contents: ConsoleContents,
  modules: readonly string[],
  basePath: string,
): ConsoleDocument {
  const shell = createPageShell(contents, modules, basePath);
  return {
    shell,
    page: createCompressedFile(Buffer.from(shell.html)),
    etag: `"${createHash('sha256').update(shell.html).digest('base64url').slice(0, 22)}"`,
  };
}

const pathOf = ({ url }: FastifyRequest): string => new URL(url, 'http://host').pathname;

async function sendCompressed(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  file: CompressedFile,
): Promise<FastifyReply> {
  const encoding = acceptedEncoding(request.headers['accept-encoding']);
  if (encoding !== 'identity') void reply.header('content-encoding', encoding);
  return reply
    .header('vary', 'accept-encoding')
    .type(type)
    .send(await file.encode(encoding));
}

/** Calls `create` when the value is first needed. */
function once<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined;
  return () => (created ??= { value: create() }).value;
}
