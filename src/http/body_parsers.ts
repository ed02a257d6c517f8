import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ApiError, invalid } from './api_error.ts';
import { attrOf } from './validation_error.ts';

/** Levels of a body; far more than any schema has, and far less than what exhausts the stack of a walk through it. */
const maxBodyDepth = 64;

/**
 * Reads bodies: JSON, or nothing. An empty body is fine with any content type, since clients send
 * `Content-Type: application/json` with requests that carry none.
 */
export function addBodyParsers(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    // Decoding would put another character in the place of what is none, and keep that.
    if (!isUtf8(bytes)) {
      done(new ApiError(400, 'parse_error', 'JSON parse error - the body is not UTF-8.'));
      return;
    }
    const text = bytes.toString();
    if (text.trim() === '') {
      done(null, undefined);
      return;
    }
    const parsed = (error: Error | null, body?: unknown) => {
      if (error) done(new ApiError(400, 'parse_error', `JSON parse error - ${error.message}`));
      else done(null, body);
    };
    void parseJson(request, text, parsed);
  });
  app.addContentTypeParser<string>('*', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') done(null, undefined);
    else done(new ApiError(415, 'unsupported_media_type', 'Send the body as application/json.'));
  });
  app.addHook('preValidation', (request, _reply, done) => {
    // A body that is left out is the empty object to the schemas of bodies.
    if (request.body === undefined && request.routeOptions.schema?.body !== undefined) request.body = {};
    if (isDeeperThan(request.body, maxBodyDepth)) {
      done(invalid(`A body may nest at most ${maxBodyDepth} levels.`, null));
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

/** Path of the first text that PostgreSQL could not store, or undefined. */
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
