import { describe, expect, it } from '@jest/globals';
import { ServiceError } from '@temporalio/client';
import {
  ensureSearchAttributes,
  searchAttributeNames,
  SearchAttributesMissing,
} from '../../src/temporal/search_attributes.ts';

const codes = { unknown: 3, forbidden: 7, unimplemented: 12 };
type Response = keyof typeof codes | 'ok';

const errorOf = (response: keyof typeof codes) =>
  new ServiceError(response, {
    cause: Object.assign(new Error(response), { code: codes[response], details: response, metadata: {} }),
  });

/**
 * A server that responds so, in turn, when asked whether the attributes are usable, and to an operator. Only what is used
 * of a connection: a real server cannot be made to forbid one request.
 */
function serverResponding(counts: Response[], operator: Response = 'ok') {
  const added: string[][] = [];
  const connected = {
    client: {
      options: { namespace: 'default' },
      workflow: {
        count: () => {
          const response = counts.shift() ?? 'ok';
          return response === 'ok' ? Promise.resolve({ count: 0 }) : Promise.reject(errorOf(response));
        },
      },
    },
    connection: {
      operatorService: {
        listSearchAttributes: () =>
          operator === 'ok'
            ? Promise.resolve({ customAttributes: { ExportdRun: 2 } })
            : Promise.reject(errorOf(operator)),
        addSearchAttributes: ({ searchAttributes }: { searchAttributes: object }) => {
          added.push(Object.keys(searchAttributes));
          return Promise.resolve({});
        },
      },
    },
  };
  const ensure = (registers = true) =>
    ensureSearchAttributes(
      connected as unknown as Parameters<typeof ensureSearchAttributes>[0],
      { EXPORTD_REGISTER_SEARCH_ATTRIBUTES: registers },
      new AbortController().signal,
    );
  return { counts, added, ensure };
}

describe('search attributes', () => {
  it('need no operator when the server knows them', async () => {
    const server = serverResponding(['ok'], 'forbidden');
    await expect(server.ensure()).resolves.toBeUndefined();
  });

  it('are registered when they are missing, and usable afterwards', async () => {
    const server = serverResponding(['unknown', 'unknown', 'unknown']);
    await server.ensure();
    expect(server.added).toEqual([searchAttributeNames.filter((name) => name !== 'ExportdRun')]);
    expect(server.counts).toEqual([]);
  });

  it('are left to the operator by a setting', async () => {
    const server = serverResponding(['unknown']);
    await expect(server.ensure(false)).rejects.toThrow(SearchAttributesMissing);
    expect(server.added).toEqual([]);
  });

  it.each(['forbidden', 'unimplemented'] as const)(
    'are left to the operator where registering is %s',
    async (response) => {
      const server = serverResponding(['unknown'], response);
      await expect(server.ensure()).rejects.toThrow('Run "exportd temporal setup" as an operator');
    },
  );

  it('are not waited for when the server rejects the question for another reason', async () => {
    await expect(serverResponding(['forbidden']).ensure()).rejects.toThrow('forbidden');
  });
});
