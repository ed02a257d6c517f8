import { expect, it } from '@jest/globals';
import { ServiceError } from '@temporalio/client';
import { registerSearchAttributes } from '../../src/temporal/search_attributes.ts';
import { searchAttributes } from '../../workflows/search_attributes.ts';

/** A server that has every attribute and answers the question whether they can be used in turn with these. */
function serverThat(answers: ('refused' | 'forbidden' | 'answered')[]) {
  const codes = { refused: 3, forbidden: 7 };
  const count = () => {
    const answer = answers.shift() ?? 'answered';
    if (answer === 'answered') return Promise.resolve({ count: 0 });
    const cause = Object.assign(new Error(answer), { code: codes[answer], details: answer, metadata: {} });
    return Promise.reject(new ServiceError(answer, { cause }));
  };
  const customAttributes = Object.fromEntries(Object.values(searchAttributes).map(({ name }) => [name, 2]));
  const withDeadline = <Result>(_: number, work: () => Promise<Result>): Promise<Result> => work();
  // As much of a connection as is used: a server of Temporal's cannot be brought to forbid one question.
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

it('search attributes are waited for while the server does not know them yet', async () => {
  const answers: Parameters<typeof serverThat>[0] = ['refused', 'refused'];
  await registerSearchAttributes(serverThat(answers), signal);
  expect(answers).toEqual([]);
});

it('a server that refuses for a reason of its own is not asked for ever', async () => {
  await expect(registerSearchAttributes(serverThat(['forbidden']), signal)).rejects.toThrow('forbidden');
});
