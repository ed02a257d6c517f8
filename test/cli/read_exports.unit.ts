import { expect, it } from '@jest/globals';
import { readExports } from '../../src/cli/service_client.ts';

it('all exports of a project are read, page by page', async () => {
  const ids = Array.from({ length: 1_001 }, (_, index) => ({ id: index }));
  const call = (_method: string, path: string) => {
    const search = new URL(path, 'http://service').searchParams;
    const [limit, offset] = [Number(search.get('limit')), Number(search.get('offset'))];
    const next = offset + limit < ids.length ? 'http://service/next' : null;
    const body = { next, results: ids.slice(offset, offset + limit) };
    return Promise.resolve({ status: 200, body, location: null });
  };
  expect(await readExports({ call })).toEqual(ids);
});
