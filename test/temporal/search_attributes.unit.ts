import { expect, it } from '@jest/globals';
import { ServiceError } from '@temporalio/client';
import { registerSearchAttributes } from '../../src/temporal/search_attributes.ts';
import { searchAttributes } from '../../workflows/search_attributes.ts';

/** A server that has every attribute and returns these responses, in turn, when asked whether they are usable. */
function serverResponding(responses: ('rejected' | 'forbidden' | 'ok')[]) {
  const codes = { rejected: 3, forbidden: 7 };
  const count = () => {
    const response = responses.shift() ?? 'ok';
    if (response === 'ok') return Promise.resolve({ count: 0 });
    const cause = Object.assign(new Error(response), {
      code: codes[response],
      details: response,
      metadata: {},
    });
    return Promise.reject(new ServiceError(response, { cause }));
  };
  const customAttributes = Object.fromEntries(Object.values(searchAttributes).map(({ name }) => [name, 2]));
  const withDeadline = <Result>(_: number, work: () => Promise<Result>): Promise<Result> => work();
  // Only what is used of a connection: a real server cannot be made to forbid one request.
  const connection = {
    client: { options: { namespace: 'default' }, workflow: { count }, withDeadline },
    connection: {
      withDeadline,
      operatorService: { listSearchAttributes: () => Promise.resolve({ customAttributes }) },
    },
  };
  return connection as unknown as Parameters<typeof registerSearchAttributes>[0];
}
const { signal } = new AbortController();

it('waits until the server knows the search attributes', async () => {
  const responses: Parameters<typeof serverResponding>[0] = ['rejected', 'rejected'];
  await registerSearchAttributes(serverResponding(responses), signal);
  expect(responses).toEqual([]);
});

it('throws when the server rejects them for another reason', async () => {
  await expect(registerSearchAttributes(serverResponding(['forbidden']), signal)).rejects.toThrow(
    'forbidden',
  );
});
