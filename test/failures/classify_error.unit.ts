import { describe, expect, it } from '@jest/globals';
import { S3ServiceException } from '@aws-sdk/client-s3';
import { ServiceError } from '@temporalio/client';
import pg from 'pg';
import { SecretUnreadable } from '../../src/config/key_ring.ts';
import { classifyError, toApplicationFailure } from '../../src/failures/classify_error.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { toDestinationError } from '../../src/destination/errors.ts';
import { CommandRejected } from '../../src/domain/errors.ts';
import { GenerationSuperseded, RunEnded } from '../../src/domain/run.ts';
import { RelationNotFound } from '../../src/source/relations.ts';
import { RowQueryFailed } from '../../src/source/row_query/selected_rows.ts';

const secret = 'AKIAPLANTEDCANARY';

function s3Error(name: string, status: number): Error {
  return Object.assign(
    new S3ServiceException({
      name,
      $fault: 'client',
      $metadata: { httpStatusCode: status },
      message: `refused ${secret}`,
    }),
    { AWSAccessKeyId: secret },
  );
}

const networkError = (code: string): Error => Object.assign(new Error(`connect ${code} ${secret}`), { code });

function databaseError(code: string, message: string): Error {
  return Object.assign(new pg.DatabaseError(message, 0, 'error'), { code, detail: `Failing row: ${secret}` });
}

const s3Failure = (error: Error) => toApplicationFailure(toDestinationError(error, 'UploadPart'));

/** An error as `@temporalio/client` throws it. */
const temporalError = (code: number): Error =>
  new ServiceError('Failed to signal Workflow', {
    cause: Object.assign(new Error(`${String(code)} ${secret}`), { code, details: secret, metadata: {} }),
  });

describe('application failures', () => {
  it.each([4, 8, 14])('gRPC status %i from Temporal is transient and names what to check', (code) => {
    const failure = toApplicationFailure(temporalError(code));
    expect(failure).toMatchObject({ type: 'TemporalUnavailable', nonRetryable: false });
    expect(failure.message).toContain('check that it is up');
    expect(failure.message).not.toContain(secret);
  });

  it.each([0, 0.4])('retries after at least a millisecond when its delay is %f', (retry_delay_ms) => {
    const error = new DestinationError('DestinationUnavailable', 'silent', {
      transient: true,
      retry_delay_ms,
    });
    // Temporal ends an activity whose next delay is zero.
    expect(toApplicationFailure(error).nextRetryDelay).toBe(1);
  });

  it('any other gRPC status from Temporal is unexpected', () => {
    expect(toApplicationFailure(temporalError(13)).type).toBe('UnexpectedError');
  });

  it.each([
    ['InvalidAccessKeyId', 403, 'aws_access_key_id'],
    ['SignatureDoesNotMatch', 403, 'aws_secret_access_key'],
    ['AccessDenied', 403, 'credentials'],
    ['NoSuchBucket', 404, 'bucket_name'],
    ['PermanentRedirect', 301, 'region'],
    ['AuthorizationHeaderMalformed', 400, 'region'],
    ['MalformedXML', 400, 'MalformedXML'],
    ['NotImplemented', 501, 'NotImplemented'],
  ])('S3 error %s is permanent and names what to check', (name, status, words) => {
    const failure = s3Failure(s3Error(name, status));
    expect(failure).toMatchObject({ type: name, nonRetryable: true });
    expect(failure.message).toContain(words);
  });

  it.each([
    s3Error('SlowDown', 503),
    s3Error('InternalError', 500),
    s3Error('RequestTimeout', 400),
    s3Error('TooManyRequests', 429),
    s3Error('NoSuchUpload', 404),
    s3Error('ThrottlingException', 400),
    s3Error('KMS.ThrottlingException', 400),
    s3Error('Throttling', 400),
    s3Error('RequestLimitExceeded', 400),
    s3Error('BandwidthLimitExceeded', 403),
    s3Error('BadDigest', 400),
    s3Error('IncompleteBody', 400),
    s3Error('XAmzContentSHA256Mismatch', 400),
    networkError('ECONNREFUSED'),
    networkError('ECONNRESET'),
    Object.assign(new Error('slow'), { name: 'TimeoutError' }),
  ])('S3 error %s is transient', (error) => {
    expect(s3Failure(error).nonRetryable).toBe(false);
  });

  it.each([
    [404, true],
    [403, true],
    [429, false],
    [502, false],
    [200, false],
  ])(
    'a response with status %i that no S3 server sends names the endpoint; permanent: %s',
    (status, nonRetryable) => {
      const failure = s3Failure(
        Object.assign(new Error('unexpected content'), { $metadata: { httpStatusCode: status } }),
      );
      expect(failure).toMatchObject({ type: 'NotAnS3Server', nonRetryable });
      expect(failure.message).toContain('endpoint_url');
    },
  );

  it('an untrusted certificate is permanent', () => {
    expect(s3Failure(networkError('DEPTH_ZERO_SELF_SIGNED_CERT'))).toMatchObject({
      type: 'TlsError',
      nonRetryable: true,
    });
  });

  it("a rejected statement is named in PostgreSQL's own words, which contain names and types", () => {
    const failure = toApplicationFailure(databaseError('42883', 'operator does not exist: text > uuid'));
    expect(failure).toMatchObject({ type: 'StatementRejected', nonRetryable: false });
    expect(failure.message).toContain('operator does not exist: text > uuid');
    expect(failure.message).toContain('exportd source check');
  });

  it.each([
    [databaseError('42P01', 'relation "public.events" does not exist'), 'UndefinedTable', false],
    [databaseError('42703', 'column "uuid" does not exist'), 'UndefinedColumn', false],
    [databaseError('22P02', `invalid input "${secret}"`), 'DataException', true],
    [databaseError('28P01', 'password authentication failed'), 'InvalidAuthorization', false],
    [databaseError('57P01', 'terminating connection'), 'DatabaseUnavailable', false],
    [databaseError('40001', 'could not serialize'), 'DatabaseUnavailable', false],
    [databaseError('57014', 'canceling statement'), 'StatementTimeout', false],
    [networkError('ECONNREFUSED'), 'DatabaseUnavailable', false],
    [new Error('Connection terminated unexpectedly'), 'DatabaseUnavailable', false],
    [new RunEnded('Cancelled'), 'RunEnded', true],
    [new GenerationSuperseded('replaced'), 'GenerationSuperseded', false],
    [new CommandRejected('invalid_input', 'bad'), 'InvalidConfiguration', true],
    [new TypeError(`undefined ${secret}`), 'UnexpectedError', false],
    ['a thrown string', 'UnexpectedError', false],
  ])('%s becomes %s; permanent: %s', (error, type, nonRetryable) => {
    expect(toApplicationFailure(error)).toMatchObject({ type, nonRetryable });
  });

  it.each([
    ['tenant', new CommandRejected('invalid_input', 'bad')],
    ['tenant', toDestinationError(s3Error('NoSuchBucket', 404), 'PutObject')],
    ['tenant', toDestinationError(s3Error('InvalidAccessKeyId', 403), 'PutObject')],
    ['tenant', new RowQueryFailed('The query cannot read events.')],
    ['tenant', databaseError('2201B', 'invalid regular expression')],
    ['tenant', databaseError('22P02', 'invalid input')],
    ['operator', new SecretUnreadable('The key "a" does not decrypt a stored secret.')],
    ['operator', databaseError('28P01', 'password authentication failed')],
    ['operator', databaseError('28000', 'no pg_hba.conf entry')],
    ['operator', databaseError('42P01', 'relation "public.events" does not exist')],
    ['operator', databaseError('42501', 'permission denied for table events')],
    ['operator', databaseError('42883', 'operator does not exist')],
    ['operator', databaseError('3D000', 'database "source" does not exist')],
    ['operator', databaseError('3F000', 'schema "analytics" does not exist')],
    ['operator', databaseError('53100', 'could not extend file')],
    ['operator', databaseError('55P03', 'canceling statement due to lock timeout')],
    ['operator', new RelationNotFound('Relation "public"."events" does not exist.')],
    ['operator', networkError('ENOTFOUND')],
    ['operator', networkError('SELF_SIGNED_CERT_IN_CHAIN')],
    ['operator', networkError('CERT_HAS_EXPIRED')],
    ['operator', new Error('The server does not support SSL connections')],
    ['operator', networkError('ENOSPC')],
    ['none', toDestinationError(s3Error('SlowDown', 503), 'PutObject')],
    ['none', networkError('ECONNREFUSED')],
    ['none', databaseError('57P01', 'terminating connection')],
    ['none', databaseError('53300', 'too many connections')],
    ['none', temporalError(14)],
    ['none', new TypeError('undefined')],
    ['none', new GenerationSuperseded('replaced')],
  ])('are owned by the %s: %s', (owner, error) => {
    expect(classifyError(error)).toMatchObject({ owner, permanent: owner === 'tenant' });
  });

  it('never contain a secret, a row or the original error', () => {
    const failures = [
      s3Failure(s3Error('InvalidAccessKeyId', 403)),
      s3Failure(s3Error('Whatever', 400)),
      s3Failure(networkError('ECONNREFUSED')),
      toApplicationFailure(databaseError('22P02', `invalid input "${secret}"`)),
      toApplicationFailure(new TypeError(secret)),
    ];
    for (const failure of failures) {
      expect(`${failure.message} ${failure.stack} ${JSON.stringify(failure)}`).not.toContain(secret);
      expect(failure.cause).toBeUndefined();
    }
  });
});

describe('a foreign text in an error', () => {
  it.each([
    ['in any length', 'x'.repeat(300_000)],
    ['with markup', '<img src=x>'],
    ['with line breaks', 'Denied\nEVIL line'],
    ['that is empty', ''],
    ['of another script', 'Отказано'],
  ])('is no code %s', (_, code) => {
    const failure = toDestinationError(s3Error(code, 403), 'PutObject');
    expect(failure).toMatchObject({
      type: 'UnknownError',
      message: 'The S3 server rejected PutObject with UnknownError (status 403).',
    });
  });

  it.each(['KMS.DisabledException', 'SlowDown', 'XAmzContentSHA256Mismatch'])(
    'can be the code %s',
    (code) => {
      expect(toDestinationError(s3Error(code, 400), 'PutObject').type).toBe(code);
    },
  );

  it('is cut, and on one line', () => {
    const error = new pg.DatabaseError(
      `relation "${'a\n\u202E\u0000'.repeat(5_000)}" is missing`,
      0,
      'error',
    );
    error.code = '42P01';
    const { message } = toApplicationFailure(error);
    expect(message.length).toBeLessThanOrEqual(2_000);
    expect(message).toContain('…');
    expect(message).not.toMatch(/[\p{Cc}\u{202E}]/u);
  });
});
