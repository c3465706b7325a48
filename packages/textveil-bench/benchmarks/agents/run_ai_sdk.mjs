// An agent of the Vercel AI SDK with four tools: node run_ai_sdk.mjs MODULES TASK. MODULES: the folder node_modules.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, task] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/here.js`));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { stepCountIs, streamText, tool } = await load('ai');
const { openai } = await load('@ai-sdk/openai');
const { z } = await load('zod');

const string = z.string();
const edit = ({ path, old, new: replacement }) => {
  const text = readFileSync(path, 'utf8');
  if (text.split(old).length !== 2) return `the text is not once in ${path}`;
  writeFileSync(path, text.split(old).join(replacement));
  return `${path} is changed`;
};
const run = ({ command }) => {
  try {
    return execFileSync('bash', ['-c', command], { encoding: 'utf8' }) || 'nothing was printed';
  } catch (error) {
    return `${error.stdout}${error.stderr}`;
  }
};
const make = (description, fields, execute) =>
  tool({ description, inputSchema: z.object(fields), execute: async (given) => execute(given) });

const result = streamText({
  model: openai('gpt-5-mini'),
  system: 'You finish small projects with your tools.',
  prompt: task,
  stopWhen: stepCountIs(30),
  tools: {
    read_file: make('Reads a file.', { path: string }, ({ path }) => readFileSync(path, 'utf8')),
    write_file: make('Writes a file.', { path: string, content: string }, ({ path, content }) => {
      writeFileSync(path, content);
      return `${path} is written`;
    }),
    edit_file: make('Replaces a text.', { path: string, old: string, new: string }, edit),
    run_command: make('Runs a command.', { command: string }, run),
  },
  onError: ({ error }) => {
    console.error(error);
    process.exitCode = 1;
  },
});
for await (const piece of result.textStream) process.stdout.write(piece);
