import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ApiError, invalid } from './api_error.ts';
import { attrOf } from './validation_error.ts';

/** More levels than any schema has, and few enough to walk recursively without exhausting the stack. */
const maxBodyDepth = 64;

/**
 * Parses JSON bodies. An empty body is accepted with any content type, since clients send
 * `Content-Type: application/json` with requests that have no body.
 */
export function addBodyParsers(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    // Decoding would silently store replacement characters.
    if (!isUtf8(bytes)) {
      done(new ApiError(400, 'parse_error', 'JSON parse error: the body is not valid UTF-8.'));
      return;
    }
    const text = bytes.toString();
    if (text.trim() === '') {
      done(null, undefined);
      return;
    }
    const parsed = (error: Error | null, body?: unknown) => {
      if (error) done(new ApiError(400, 'parse_error', `JSON parse error: ${error.message}`));
      else done(null, body);
    };
    void parseJson(request, text, parsed);
  });
  app.addContentTypeParser<string>('*', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') done(null, undefined);
    else
      done(
        new ApiError(
          415,
          'unsupported_media_type',
          'Unsupported content type. Send the body as application/json.',
        ),
      );
  });
  app.addHook('preValidation', (request, _reply, done) => {
    // Body schemas treat a missing body as an empty object.
    if (request.body === undefined && request.routeOptions.schema?.body !== undefined) request.body = {};
    if (isDeeperThan(request.body, maxBodyDepth)) {
      done(invalid(`The body is nested too deeply: at most ${maxBodyDepth} levels are allowed.`, null));
      return;
    }
    for (const part of [request.body, request.query, request.params]) {
      const path = pathToUnstorableString(part);
      if (path) {
        done(invalid('Null characters and unpaired surrogates are not allowed.', attrOf(path)));
        return;
      }
    }
    done();
  });
}

const isDeeperThan = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1)));

/** Path of the first string that PostgreSQL cannot store, or undefined. */
function pathToUnstorableString(value: unknown): string[] | undefined {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed() ? [] : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    if (pathToUnstorableString(key)) return ['?'];
    const path = pathToUnstorableString(inner);
    if (path) return [key, ...path];
  }
  return undefined;
}
