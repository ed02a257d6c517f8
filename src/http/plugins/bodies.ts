import type { FastifyInstance } from 'fastify';
import { isUtf8 } from 'node:buffer';
import { Transform } from 'node:stream';
import { roundedInteger } from '../../client/exact_numbers.ts';
import { bounds, boundText } from '../../config/bounds.ts';
import { ApiError, invalid } from '../api_error.ts';
import { attrOf } from './errors.ts';

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
    // Parsing ten thousands of names or lists keeps all other requests waiting.
    const problem = sizeProblem(bytes);
    if (problem !== undefined) {
      done(invalid(problem, null));
      return;
    }
    const text = bytes.toString();
    if (text.trim() === '') {
      done(null, undefined);
      return;
    }
    const parsed = (error: Error | null, body?: unknown) => {
      if (error) {
        done(new ApiError(400, 'parse_error', `JSON parse error: ${error.message}`));
        return;
      }
      const rounded = roundedInteger(text);
      if (rounded === undefined) done(null, body);
      else
        done(
          invalid(
            `The integer ${rounded.slice(0, 40)} has more digits than a number keeps. Send it as a string.`,
            null,
          ),
        );
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
  app.addHook('preParsing', (request, _reply, body, done) => {
    // A body of a million chunks of a byte would take 400 MB.
    done(null, request.headers['transfer-encoding'] === undefined ? body : body.pipe(joinChunks()));
  });
  app.addHook('preValidation', (request, _reply, done) => {
    // Body schemas treat a missing body as an empty object.
    if (request.body === undefined && request.routeOptions.schema?.body !== undefined) request.body = {};
    for (const part of [request.body, request.query, request.params]) {
      const problem = findProblem(part);
      if (problem) {
        done(invalid(problem.detail, attrOf(problem.path)));
        return;
      }
    }
    done();
  });
}

/** Joins chunks to blocks of at most 64 KiB. */
function joinChunks(): Transform {
  let block = Buffer.allocUnsafe(65_536);
  let length = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      for (let at = 0; at < chunk.length;) {
        const copied = chunk.copy(block, length, at);
        at += copied;
        length += copied;
        if (length < block.length) continue;
        this.push(block);
        block = Buffer.allocUnsafe(block.length);
        length = 0;
      }
      done();
    },
    flush(done) {
      done(null, block.subarray(0, length));
    },
  });
}

const [quote, backslash, colon, comma] = Buffer.from('"\\:,');

/** Why JSON is too wide to be parsed, told without parsing it; undefined if it is not. */
function sizeProblem(json: Buffer): string | undefined {
  let [fields, commas] = [0, 0];
  let isInString = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) isInString = !isInString;
    else if (isInString) {
      if (byte === backslash) at += 1;
    } else if (byte === colon) fields += 1;
    else if (byte === comma) commas += 1;
  }
  if (fields > bounds.bodyFields.max)
    return `A body has at most ${boundText(bounds.bodyFields)} fields, with those of inner objects.`;
  return commas >= bounds.bodyValues.max
    ? `A body has at most ${boundText(bounds.bodyValues)} values, with those of inner lists and objects.`
    : undefined;
}

/** Why a value of a request is rejected, and where it is. */
interface ValueProblem {
  readonly detail: string;
  readonly path: readonly string[];
}

/**
 * Finds the first value that is nested too deeply, has too many items, or that PostgreSQL cannot store. The
 * bounds are larger than those of any schema: they keep validation, and its messages, short. Undefined if there is none.
 */
function findProblem(value: unknown, levels = bounds.bodyDepth.max): ValueProblem | undefined {
  if (typeof value === 'string')
    return isStorable(value) ? undefined : { detail: unstorableDetail(value), path: [] };
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0)
    return {
      detail: `The body is nested too deeply: at most ${boundText(bounds.bodyDepth)} are allowed.`,
      path: [],
    };
  if (Array.isArray(value) && value.length > bounds.bodyItems.max)
    return { detail: `A list has at most ${boundText(bounds.bodyItems)} items.`, path: [] };
  for (const [key, inner] of Object.entries(value)) {
    if (!isStorable(key))
      return { detail: 'Null characters and unpaired surrogates are not allowed.', path: ['?'] };
    if (key.length > bounds.bodyFieldName.max)
      return { detail: `The name of a field has at most ${boundText(bounds.bodyFieldName)}.`, path: [] };
    const problem = findProblem(inner, levels - 1);
    if (problem) return { ...problem, path: [key, ...problem.path] };
  }
  return undefined;
}

/** Where a string has a character that PostgreSQL cannot store. */
function unstorableDetail(text: string): string {
  const before = text.slice(0, text.search(/[\0\p{Surrogate}]/u)).split(/\r\n|\n|\r/);
  const column = Array.from(before.at(-1) ?? '').length + 1;
  return `Null characters and unpaired surrogates are not allowed. (line ${before.length}, column ${column})`;
}

/** Whether PostgreSQL can store a string. */
const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
