// Writes the tables of all settings and bounds into README.md of this folder: node src/config/write_settings_table.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withGeneratedTables } from './settings_table.ts';

const path = join(import.meta.dirname, 'README.md');
writeFileSync(path, withGeneratedTables(readFileSync(path, 'utf8')));
