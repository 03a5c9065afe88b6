"""Programs that do what a test tells them, a line for each thing, and answer with a line."""

import subprocess


class Told:
    """Such a program. It is killed at the end of the block; `leave` ends it in order. Waits last at most hang_s."""

    def __init__(self, command, hang_s, **more):
        self.hang_s = hang_s
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def line(self):
        said = self.process.stdout.readline().strip()
        assert said, f"the program ended with {self.process.wait(self.hang_s)}"
        return said

    def leave(self):
        """The end of its input, or a word before, ends the program."""
        self.process.stdin.close()
        status = self.process.wait(self.hang_s)
        assert status == 0, status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
