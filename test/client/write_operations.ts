// Program of `npm run client`: writes the types of the client.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeApi } from '../http/describe_api.ts';
import { describeOperations } from './describe_operations.ts';

writeFileSync(
  join(import.meta.dirname, '../../src/client/operations.ts'),
  describeOperations(await describeApi()),
);
