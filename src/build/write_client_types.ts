// Program of `npm run client`, which the check runs first: writes the types of the client.
import { readApiDocument } from '../http/serverless_app.ts';
import { writeClientTypes } from './client_types.ts';

await writeClientTypes(await readApiDocument());
